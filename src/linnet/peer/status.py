"""What a node tells of itself when it is examined."""

from __future__ import annotations

from linnet.overlay.tracked import Graph
from linnet.peer.config import PeerConfig
from linnet.peer.interface import NodeStatus
from linnet.peer.parts import Parts


def node_status(parts: Parts, config: PeerConfig, roles: tuple[str, ...], started_at: float) -> NodeStatus:
    """All parts at once."""
    tracked: tuple[Graph, ...] = ()
    if parts.tracker is not None:
        graphs = map(parts.tracker.graph, parts.tracker.topics)
        tracked = tuple(graph for graph in graphs if graph is not None)
    return NodeStatus(
        parts.context.peer,
        parts.context.author,
        started_at,
        roles,
        config.listens,
        parts.member.reachable,
        parts.member.reachable_reason,
        tuple(parts.links.blocked),
        parts.links.status(),
        parts.streams.status(),
        tracked,
        parts.rooms.status(),
    )
