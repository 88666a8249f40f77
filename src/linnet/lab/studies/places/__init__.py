"""The study of places: what can be told from the fragments that somebody kept of them."""
