"""Flooding: what is new goes to every neighbour except the one it came from.

No subset, no asking first: delivery is certain and a hop costs one link's delay (Juslenius 2021,
section 4.2.2). In a static graph a unit is sent n*d - (n-1) times.

Where an overlay knows better whom to send to, it says so (`Flood.route`): on a ring a unit goes to
the two neighbours and a few others (`linnet.overlay.trackerless.spreading`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linnet.core.effects import Send
from linnet.core.ids import PeerId, TopicId
from linnet.core.limits import LARGEST_COUNT
from linnet.delivery.messages import MAX_HOPS, Data
from linnet.event.event import Unverified, Verified
from linnet.identity.cards import Card
from linnet.trace.records import Kind, Record

FloodEffect = Send[Data] | Record

Routing = Callable[[tuple[PeerId, ...], Sequence[PeerId]], Sequence[PeerId]]
"""Whom of the neighbours that are up a unit goes to, given who had it before us (nobody: it is ours).

It names each neighbour at most once, and nobody else. Those who had it are left out in any case.
"""


class Neighbor:
    """What we keep of one neighbour in one topic."""

    __slots__ = ("congested", "devices", "is_served", "told", "units")

    def __init__(self, distinct: int) -> None:
        self.congested = False
        self.is_served = False
        """Whether it takes part through us: then it is sent everything, whatever the routing."""
        self.devices: dict[bytes, Card] = {}
        """The card of each device that it has had from us; a renewed one is sent again."""
        self.told = 0
        """How much of our news of heads it has had (`linnet.streams.announcements`)."""
        self.units = -distinct
        """Units that it sent, less the distinct ones that there were when it came."""


class Flood:
    """The neighbours of one topic, and how a unit is passed on to them."""

    def __init__(self, topic: TopicId) -> None:
        self._topic = topic
        self.neighbors: dict[PeerId, Neighbor] = {}
        self._strangers: dict[PeerId, Neighbor] = {}
        self.distinct = 0
        """Units that were new to us, since the beginning."""
        self._routing: Routing | None = None

    def route(self, routing: Routing | None) -> None:
        """From now on send each unit to those whom this names; None: to everyone but its sources."""
        self._routing = routing

    def up(self, peer: PeerId) -> None:
        """A neighbour is there."""
        self.neighbors.setdefault(peer, Neighbor(self.distinct))

    def down(self, peer: PeerId) -> None:
        """A neighbour is gone."""
        self.neighbors.pop(peer, None)

    def unlinked(self, peer: PeerId) -> None:
        """The link to a peer is gone, a neighbour or not."""
        self.neighbors.pop(peer, None)
        self._strangers.pop(peer, None)

    def is_served(self, peer: PeerId) -> bool:
        """Whether this neighbour takes part through us."""
        neighbor = self.neighbors.get(peer)
        return neighbor is not None and neighbor.is_served

    @property
    def is_alone(self) -> bool:
        """Whether nobody is there but those who take part through us."""
        return all(neighbor.is_served for neighbor in self.neighbors.values())

    @property
    def stalled(self) -> bool:
        """Whether there are neighbours and all of them are congested.

        A routing chooses among all neighbours, so while one of them takes more, units may go out.
        """
        neighbors = self.neighbors.values()
        return bool(neighbors) and all(neighbor.congested for neighbor in neighbors)

    def heard(self, peer: PeerId) -> int:
        """Count a unit that a peer sent; returns how many it sent beyond those that there are.

        A neighbour sends each unit once at most, whatever the routing, so what goes beyond is replayed.
        Others send units too: publishers to storage nodes, or neighbours that we do not know as such yet.
        """
        neighbor = self.neighbors.get(peer)
        if neighbor is None:
            neighbor = self._strangers.get(peer)
            if neighbor is None:
                neighbor = self._strangers[peer] = Neighbor(self.distinct)
        neighbor.units += 1
        return neighbor.units - self.distinct

    def spread(
        self, verified: Verified, card: Card, sources: tuple[PeerId, ...], hops: int, age_us: int, now: float
    ) -> list[FloodEffect]:
        """Pass a unit on to everyone but those it came from, or to those of them whom the routing names."""
        unit = verified.unit
        device = unit.author + unit.device
        sent_us = int(now * 1_000_000)
        # What others say of hops and age is not checked; what we pass on must stay a message.
        hops, age_us = min(hops, MAX_HOPS), min(age_us, LARGEST_COUNT)
        onward = Data(unit, hops, age_us, sent_us, None)
        introduced: Data | None = None
        head, short, seq, events = verified.events[-1].id, unit.device, unit.seq, len(unit.tails)
        size = unit_bytes(unit)
        effects: list[FloodEffect] = []
        neighbors = self.neighbors if self._routing is None else self._routed(self._routing, sources)
        for peer, neighbor in neighbors.items():
            if peer in sources:
                continue
            if neighbor.devices.get(device) is card:
                message = onward
            else:
                neighbor.devices[device] = card
                message = introduced = introduced or Data(unit, hops, age_us, sent_us, card)
            effects.append(Send(peer, message))
            effects.append(Record(Kind.SENT, self._topic, head, short, seq, events, peer, hops, size))
        return effects

    def _routed(self, routing: Routing, sources: tuple[PeerId, ...]) -> dict[PeerId, Neighbor]:
        served = {peer: each for peer, each in self.neighbors.items() if each.is_served}
        others = tuple(peer for peer in self.neighbors if peer not in served)
        return {peer: self.neighbors[peer] for peer in routing(sources, others)} | served


def unit_bytes(unit: Unverified) -> int:
    """About the bytes that a unit takes on a link: its tails and the rest of it."""
    tails = unit.tails
    return (len(tails[0]) if len(tails) == 1 else sum(map(len, tails))) + 2 * len(tails) + 180


def unit_record(kind: Kind, verified: Verified) -> Record:
    """What a trace says of a whole unit that is ours or was checked."""
    unit = verified.unit
    count = len(unit.tails)
    return Record(kind, unit.topic, verified.head, unit.device, unit.seq, count, bytes=unit_bytes(unit))
