"""The node that people run: configuration, key files, composition, the control API, the library."""
