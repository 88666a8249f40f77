"""Attackers and attacks. The engine does not depend on them."""
