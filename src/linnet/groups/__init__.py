"""End-to-end encrypted groups of devices, without any server (docs/design/groups.md)."""
