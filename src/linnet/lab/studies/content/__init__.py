"""The study of content: the published scenarios, run with the shipped machines."""
