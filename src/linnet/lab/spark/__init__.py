"""Spark, as the lab uses it: a session, the library on its executors, progress."""
