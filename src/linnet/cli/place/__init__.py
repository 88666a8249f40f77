"""Places: hosts, guests, announcements, objects."""
