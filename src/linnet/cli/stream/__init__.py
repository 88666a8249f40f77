"""Commands about streams: publish, subscribe, policies, and readers of sealed streams."""
