"""A study of its own: how long is a message? docs/lab/write-your-own-study.md explains it."""
