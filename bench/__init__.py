"""Measurements: `python -m bench` runs all of them (docs/benchmarks.md)."""
