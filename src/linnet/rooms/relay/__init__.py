"""The relay: holds a room's events for those who are away, and reads none of them."""
