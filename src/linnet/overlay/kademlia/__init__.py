"""Kademlia: finds the nodes nearest to a key, and keeps records there (decision 0020)."""
