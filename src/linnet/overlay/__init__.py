"""Who talks to whom: the tracker's graph, its control protocol, and the choice of trackers."""
