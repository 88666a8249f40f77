"""Names: zones of signed records, petnames, and the resolution of a name to a key or a place."""
