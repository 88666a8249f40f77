"""The node as a program: configuration, key files, composition, the control API, the library."""
