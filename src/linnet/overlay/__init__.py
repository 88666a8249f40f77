"""Overlays, which give a node its neighbours: the tracker's graph, its control protocol, the choice of
trackers."""
