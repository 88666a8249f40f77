"""Channels after PSYC: syntax, state, membership, history."""
