"""``linnet sim``: the shipped node on a virtual clock, with seeded links."""
