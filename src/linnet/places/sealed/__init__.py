"""Places for guests alone: what is said is encrypted, and the keys go to their devices."""
