"""The scenarios of overlays without trackers, with a tracker's graph for comparison."""
