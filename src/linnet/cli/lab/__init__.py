"""The commands of ``linnet lab``."""
