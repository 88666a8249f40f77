"""The base of all machines of a node: parts with marked handlers, and the outbox for their effects."""
