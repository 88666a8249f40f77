"""Formulas that several studies share, each in one place; docs/lab/metrics.md states them."""
