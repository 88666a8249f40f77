"""Kademlia: who is nearest to a key among all nodes, and records kept there (decision 0020)."""
