"""The relay client: how a member of a room uses its relays."""
