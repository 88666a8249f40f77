"""What runs in processes of its own while it is measured."""
