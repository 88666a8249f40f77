"""What a proxy removes when a client has too much: the oldest first of what the client has taken.

A stream is kept once, for all its clients, and counts for each of them. It is trimmed only when all
of them are over their quota: what one of them has room for stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from linnet.core.ids import PeerId, TopicId
from linnet.core.stores import Entry, EventLog
from linnet.delivery.chain import ChainKey

LOOKED_AT = 256
"""Units of one stream that are looked at in one go; the next look goes on behind them."""

TakenBy = Mapping[PeerId, Mapping[TopicId, Mapping[ChainKey, int]]]


def trims(
    log: EventLog, clients: Mapping[PeerId, Iterable[TopicId]], taken: TakenBy, most: int
) -> dict[TopicId, int]:
    """The bytes to which streams have to shrink."""
    clients_of: dict[TopicId, list[PeerId]] = {}
    for peer, topics in clients.items():
        for topic in topics:
            clients_of.setdefault(topic, []).append(peer)
    kept = {topic: log.kept(topic).bytes for topic in clients_of}
    over = {peer for peer, topics in clients.items() if sum(kept[topic] for topic in topics) > most}
    left = dict(kept)
    for topics in clients.values():
        excess = sum(left[topic] for topic in topics) - most
        if excess > 0:
            free = [topic for topic in topics if over.issuperset(clients_of[topic])]
            for topic, size in _first_to_go(log, free, clients_of, taken, kept, left):
                if excess <= 0:
                    break
                left[topic] -= size
                excess -= size
    return {topic: most for topic, most in left.items() if most < kept[topic]}


def _first_to_go(
    log: EventLog,
    topics: Iterable[TopicId],
    clients_of: Mapping[TopicId, list[PeerId]],
    taken: TakenBy,
    kept: Mapping[TopicId, int],
    left: Mapping[TopicId, int],
) -> list[tuple[TopicId, int]]:
    """Units by topic and size: first those that all clients have taken, oldest first, then the others."""
    order: list[tuple[bool, float, TopicId, int]] = []
    for topic in topics:
        gone, still = kept[topic] - left[topic], True
        for _, entry in log.read(topic, 0, LOOKED_AT):
            still = still and all(_has(taken, peer, entry) for peer in clients_of[topic])
            if gone > 0:  # another client's turn has removed it
                gone -= len(entry.raw)
            else:
                order.append((not still, entry.stored_at, topic, len(entry.raw)))
    return [(topic, size) for _, _, topic, size in sorted(order, key=lambda each: each[:2])]


def _has(taken: TakenBy, peer: PeerId, entry: Entry) -> bool:
    reached = taken.get(peer, {}).get(entry.topic, {})
    return entry.last is not None and reached.get(entry.author + entry.device, -1) >= entry.last
