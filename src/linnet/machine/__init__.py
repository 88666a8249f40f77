"""What all machines of a node are made of: parts with marked handlers, and the outbox for their effects."""
