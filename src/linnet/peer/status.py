"""What a node tells of itself when it is examined."""

from __future__ import annotations

from linnet.content.part import Content
from linnet.overlay.kademlia.kademlia import Kademlia
from linnet.overlay.tracked import Graph
from linnet.peer.config import PeerConfig
from linnet.peer.interface import ContentStatus, HashTableStatus, NodeStatus
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
        _hash_table(parts.kademlia),
        _content(parts.content),
        parts.links.clocks.ahead(),
        tuple(parts.company()),
        parts.links.unanswered(),
    )


def _hash_table(kademlia: Kademlia | None) -> HashTableStatus | None:
    if kademlia is None:
        return None
    return HashTableStatus(len(kademlia.table), len(kademlia.shelf), kademlia.placed)


def _content(content: Content | None) -> ContentStatus | None:
    if content is None:
        return None
    scout = content.scout
    held = tuple(sorted(scout.elections.held))
    return ContentStatus(scout.subscriptions, len(scout.table), held, scout.arrivals)
