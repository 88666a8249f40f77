"""What relays change: the performance experiments of Schichtholz 2024 on any chats."""
