"""Names: zones of signed records, petnames, and how a name leads to a key."""
