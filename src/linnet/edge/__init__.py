"""The edge: local networks, and devices that take part through proxies."""
