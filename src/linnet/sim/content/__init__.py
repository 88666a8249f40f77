"""The scenarios of content: subscriptions by attribute, rendezvous and publisher groups."""
