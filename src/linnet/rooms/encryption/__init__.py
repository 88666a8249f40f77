"""Encrypted rooms: the group of devices that hold a room's keys, beside the people who are in it."""
