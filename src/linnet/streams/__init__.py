"""Streams: open, high-rate topics. Trackers build the graph, nodes flood, gaps are seen and filled."""
