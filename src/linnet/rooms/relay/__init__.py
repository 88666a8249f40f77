"""The relay: stores a room's events for offline members, without reading them."""
