"""Getting every event to everyone: flood, duplicates, gaps, subscriptions, receipts."""
