"""The number of files and sockets that a node may open, compared with what its configuration allows."""

from __future__ import annotations

import resource

from linnet.core.errors import LocalError
from linnet.node.config import NodeConfig

SPARE = 64
"""Descriptors besides links: the store, the trace, listeners, the control API and its callers."""


def needed(config: NodeConfig) -> int:
    """Return the most descriptors that a node of this configuration needs at once."""
    return config.links.max_links + config.net.max_handshakes + config.net.max_dials + SPARE


def raise_limit(config: NodeConfig) -> None:
    """Raise the limit to what the configuration may need, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = needed(config)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def told(config: NodeConfig) -> str:
    """Describe the limit; raises `LocalError` if links would fail before the configured number is reached."""
    wanted, hard = needed(config), resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard == resource.RLIM_INFINITY:
        return f"{wanted} may be needed, and there is no limit"
    if hard < wanted:
        most = max(1, hard - (wanted - config.links.max_links))
        raise LocalError(
            f"{wanted} may be needed, but the system allows {hard}; "
            f"raise the limit (ulimit -Hn), or set links.max_links to {most}"
        )
    return f"{wanted} may be needed, {hard} are allowed"
