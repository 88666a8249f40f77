"""The study of overlays without trackers: attacks, what filters tell, rings, failures, and cost."""
