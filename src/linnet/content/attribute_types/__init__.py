"""What an attribute can be asked for: one module for each sort, and `registry`, the one list of them."""
