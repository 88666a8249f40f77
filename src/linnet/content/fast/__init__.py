"""FastDelivery: a publisher serves its subscribers itself, or through some of them, in two hops at most."""
