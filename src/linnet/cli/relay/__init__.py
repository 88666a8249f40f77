"""``linnet relay``: what a relay is asked by its owner."""
