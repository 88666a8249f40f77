"""What happened to the messages of real nodes, by their traces."""
