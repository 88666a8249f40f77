"""The pure node machine: every protocol, composed."""
