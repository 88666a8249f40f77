"""The scenario of group encryption: partitions, thefts, and what stays secret."""
