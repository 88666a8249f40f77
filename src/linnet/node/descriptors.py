"""The number of files and sockets that a node may open, compared with what its configuration allows."""

from __future__ import annotations

import resource

from msgspec.structs import replace

from linnet.core.errors import LocalError
from linnet.node.config import NodeConfig

SPARE = 128
"""Descriptors besides links: the store, the trace, listeners, the control API and its callers, and the
connections that are accepted in one turn before others make room for them."""

_ENOUGH = 65_536
"""Descriptors that are enough for any node."""

_FEWEST = 8
"""The fewest links, strangers and dials with which a node is of use."""


def needed(config: NodeConfig) -> int:
    """Return the most descriptors that a node of this configuration needs at once."""
    return config.links.max_links + config.net.max_handshakes + config.net.max_dials + SPARE


def raise_limit() -> None:
    """Let this process open as many as the system allows it, and no more than any node needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def fit_to_limit(config: NodeConfig) -> NodeConfig:
    """Return the configuration with as many links, strangers and dials as the limit of this process allows.

    A node that runs out of descriptors can open neither its store nor a link, and strangers could bring it
    there.
    """
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return config if soft == resource.RLIM_INFINITY else _fit(config, soft)


def _fit(config: NodeConfig, limit: int) -> NodeConfig:
    share = (limit - SPARE) / (needed(config) - SPARE)
    if share >= 1:
        return config

    def part(count: int) -> int:
        return min(count, max(_FEWEST, int(count * share)))

    net, links = config.net, config.links
    return replace(
        config,
        links=replace(links, max_links=part(links.max_links)),
        net=replace(net, max_handshakes=part(net.max_handshakes), max_dials=part(net.max_dials)),
    )


def told(config: NodeConfig) -> str:
    """Describe the limit; raises `LocalError` if fewer links are possible than the configuration says."""
    wanted, hard = needed(config), resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard == resource.RLIM_INFINITY:
        return f"{wanted} may be needed, and there is no limit"
    if hard < wanted:
        most = _fit(config, hard).links.max_links
        raise LocalError(
            f"{wanted} may be needed, but the system allows {hard}, enough for {most} links; "
            f"raise the limit (ulimit -Hn), or set links.max_links to {most}"
        )
    return f"{wanted} may be needed, {hard} are allowed"
