"""The store that survives a restart: the event log and the named values, in memory or in one SQLite file."""
