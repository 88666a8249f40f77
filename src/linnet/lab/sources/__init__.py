"""Sources: files of the world read into the lab's tables."""
