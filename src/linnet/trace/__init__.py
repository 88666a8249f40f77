"""What is recorded: the records, their schema, and writers for node and simulator."""
