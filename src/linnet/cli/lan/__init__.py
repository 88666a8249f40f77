"""``linnet lan``: local networks."""
