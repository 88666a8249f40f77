"""Delivery of every event to every subscriber: flooding, duplicates, gaps, subscriptions, receipts."""
