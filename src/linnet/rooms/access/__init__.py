"""Who may do what in a room: pure functions, the same for members and relays."""
