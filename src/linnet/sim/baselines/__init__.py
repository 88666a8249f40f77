"""Published ways to sample peers, for comparison with the one that nodes use. No node runs them."""
