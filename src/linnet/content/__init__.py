"""Subscribe to what is said: predicates over the attributes of events, and how the two are brought together.

See docs/design/content.md.
"""
