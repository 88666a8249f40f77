"""``linnet chat``: talking in a room, in a terminal or through a pipe."""
