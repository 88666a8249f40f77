"""How long relays should keep events, which Schichtholz 2024 leaves open: delivery against what is held."""
