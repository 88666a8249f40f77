"""The scenarios of rooms: members that come and go, traffic files, and the oracle that judges them."""
