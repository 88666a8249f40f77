"""Rooms: members, power levels, an event DAG, and relays that hold events for those who are away."""
