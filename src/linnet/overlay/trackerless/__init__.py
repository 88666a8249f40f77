"""Overlays without trackers: peers are sampled, those with like interests found, rings kept per topic."""
