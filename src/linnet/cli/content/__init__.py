"""Content: subscribe to what is said."""
