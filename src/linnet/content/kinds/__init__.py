"""What an attribute can be asked for: one module for each kind, and `kinds`, the one list of them."""
