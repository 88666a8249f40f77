"""Encrypted rooms: the group of devices that hold a room's keys, as distinct from its members."""
