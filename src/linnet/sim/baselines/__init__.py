"""Published ways to sample peers, for comparison with the shipped one. No node runs them."""
