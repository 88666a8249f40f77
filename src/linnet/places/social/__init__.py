"""What people and programs meet: hosts, guests, methods, objects."""
