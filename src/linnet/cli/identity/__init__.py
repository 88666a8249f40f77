"""``linnet id``: one file per command, and what they share."""
