"""An example of a study: how long is a message? docs/lab/write-your-own-study.md explains it."""
