"""Places for guests alone: messages are encrypted, and the keys go to their devices."""
