"""Which of a million predicates accept which of a million events, on Spark."""
