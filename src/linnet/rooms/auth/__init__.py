"""Authorisation in a room: its rules, the control DAG, and the state that follows from it."""
