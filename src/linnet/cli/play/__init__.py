"""``linnet play``: traffic in a room, simulated or on real nodes, and the merged log of it."""
