"""Delivery: one voice to all members, through members."""
