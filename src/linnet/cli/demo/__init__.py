"""``linnet demo``: a real network on this machine, two of whose processes are killed."""
