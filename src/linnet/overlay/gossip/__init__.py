"""Overlays without trackers: nodes sample peers, find those with similar interests, and keep a ring per
topic."""
