"""The event: one signed record for everything that is said, alone or in a burst."""
