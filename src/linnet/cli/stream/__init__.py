"""Sealed streams on the command line: asking to read, letting in, putting out."""
