"""Workloads that are drawn instead of read."""
