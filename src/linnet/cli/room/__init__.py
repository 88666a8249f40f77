"""``linnet room``: one file per command, and what they share."""
