"""``linnet name``: one file per command, and what they share."""
