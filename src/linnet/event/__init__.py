"""The event: one signed record for everything that is published, alone or in a burst."""
