"""Identities: person and device keys, device cards, ids that people can type."""
