"""Publish/subscribe by content: subscriptions are predicates over the attributes of events.

See docs/design/content.md.
"""
