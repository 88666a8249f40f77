"""Rooms: members, power levels, an event DAG, and relays that store events for offline members."""
