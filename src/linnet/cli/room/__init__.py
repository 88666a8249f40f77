"""``linnet room`` and ``linnet chat``."""
