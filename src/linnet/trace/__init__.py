"""The trace of a run: its records, their schema, and writers for node and simulator."""
