"""The simulated driver: virtual clock, seeded links, and the scenarios of ``linnet sim``."""
