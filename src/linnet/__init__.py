"""Linnet: publish-subscribe without servers, with a receipt for every message."""
