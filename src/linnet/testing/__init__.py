"""What tests of programs that use Linnet need: nodes in memory, virtual networks, values of messages."""
