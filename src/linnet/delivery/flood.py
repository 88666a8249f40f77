"""Flooding: sends each new unit to every neighbour except the one it came from.

There is no choice of a subset, and no asking first: delivery is certain and a hop costs one link's delay
(Juslenius 2021, section 4.2.2). In a static graph a unit is sent n*d - (n-1) times.

Where an overlay knows better which neighbours need a unit, it says so (`Flood.route`): on a ring a unit goes
to the two neighbours and a few others (`linnet.overlay.gossip.dissemination`).

Suppression is an option: a unit waits for a moment before it is passed on, and neighbours that send it
meanwhile are skipped. This saves duplicates and costs delay at every hop, so it is off by default. Plain
flooding leaves d - 2 duplicates at a node; the measurements of Juslenius 2021 (section 5.3.1) lie a little
below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from linnet.core.effects import Send
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.limits import LARGEST_COUNT
from linnet.core.messages import Message
from linnet.core.timers import TopicTimer
from linnet.delivery.messages import MAX_HOPS, Data
from linnet.event.event import Unverified, Verified
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox, Sink
from linnet.trace.records import Kind, Record

Routing = Callable[[tuple[PeerId, ...], Sequence[PeerId]], Sequence[PeerId]]
"""Chooses the neighbours that a unit is sent to, given its earlier holders (none if it is ours).

It names each neighbour at most once, and nobody else. Peers that had the unit are left out in any case.
"""


class Neighbor(Struct, eq=False):
    """The state of one neighbour in one topic."""

    units: int
    """Units that it has sent, less the distinct units that there were when it became a neighbour."""
    congested: bool = False
    is_served: bool = False
    """Whether it takes part through us; then it is sent everything, whatever the routing."""
    devices: dict[bytes, Card] = {}
    """The card of each device that we have sent it; a renewed card is sent again."""
    told: int = 0
    """How much of our news of heads it has been told (`linnet.streams.announcements`)."""


class Flood:
    """The neighbours of one topic, and the way units are passed on to them."""

    def __init__(self, topic: TopicId) -> None:
        self._topic = topic
        self.neighbors: dict[PeerId, Neighbor] = {}
        self._strangers: dict[PeerId, Neighbor] = {}
        self.grafted: dict[PeerId, None] = {}
        """Neighbours that no overlay names: one end asked the other for every unit."""
        self.also: dict[PeerId, Neighbor] = {}
        """Others that are sent our own units: so no neighbours can keep them from the rest."""
        self.distinct = 0
        """Units that were new to us since the start."""
        self._routing: Routing | None = None

    def route(self, routing: Routing | None) -> None:
        """Send each unit only to the neighbours that `routing` names; None: to all but its sources."""
        self._routing = routing

    def up(self, peer: PeerId) -> None:
        """Add a neighbour of an overlay."""
        self.grafted.pop(peer, None)
        self.neighbors.setdefault(peer, Neighbor(-self.distinct))

    def down(self, peer: PeerId) -> None:
        """Remove a neighbour."""
        self.neighbors.pop(peer, None)
        self.grafted.pop(peer, None)

    def graft(self, peer: PeerId, is_wanted: bool) -> None:
        """Let a peer that no overlay names be a neighbour, or no longer; neighbours of an overlay stay so."""
        if is_wanted and peer not in self.neighbors:
            self.up(peer)
            self.grafted[peer] = None
        elif not is_wanted and peer in self.grafted:
            self.down(peer)

    def unlinked(self, peer: PeerId) -> None:
        """Forget a peer whose link is gone, whether a neighbour or not."""
        self.down(peer)
        self.also.pop(peer, None)
        self._strangers.pop(peer, None)

    def is_served(self, peer: PeerId) -> bool:
        """Return whether this neighbour takes part through us."""
        neighbor = self.neighbors.get(peer)
        return neighbor is not None and neighbor.is_served

    @property
    def is_alone(self) -> bool:
        """Whether all neighbours take part through us."""
        return all(neighbor.is_served for neighbor in self.neighbors.values())

    @property
    def stalled(self) -> bool:
        """Whether there are neighbours and all of them are congested.

        A routing chooses among all neighbours, so units may go out while any of them accepts more.
        """
        neighbors = self.neighbors.values()
        return bool(neighbors) and all(neighbor.congested for neighbor in neighbors)

    def heard(self, peer: PeerId) -> int:
        """Count a unit that a peer sent; return how many it has sent beyond the number that exist.

        A neighbour sends each unit at most once, whatever the routing, so more than that are replays. Others
        send units too: publishers to storage nodes, or nodes that do not yet count as our neighbours.
        """
        neighbor = self.neighbors.get(peer)
        if neighbor is None:
            neighbor = self._strangers.get(peer)
            if neighbor is None:
                neighbor = self._strangers[peer] = Neighbor(-self.distinct)
        neighbor.units += 1
        return neighbor.units - self.distinct

    def spread(
        self,
        verified: Verified,
        card: Card,
        sources: tuple[PeerId, ...],
        hops: int,
        age_us: int,
        now: float,
        out: Sink,
    ) -> None:
        """Send a unit to all neighbours but its sources, or to those of them that the routing names."""
        unit = verified.unit
        device = unit.author + unit.device
        sent_us = int(now * 1_000_000)
        # Hops and age from others are not checked, but what we pass on must be a valid message.
        hops, age_us = min(hops, MAX_HOPS), min(age_us, LARGEST_COUNT)
        onward = Data(unit, hops, age_us, sent_us, None)
        introduced: Data | None = None
        head, short, seq, events = verified.events[-1].id, unit.device, unit.seq, len(unit.tails)
        size = unit_bytes(unit)
        effects: list[Send[Message] | Record] = []
        neighbors = self.neighbors if self._routing is None else self._routed(self._routing, sources)
        if self.also and not sources:
            neighbors = {**self.also, **neighbors}
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
        if effects:
            out.extend(effects)

    def _routed(self, routing: Routing, sources: tuple[PeerId, ...]) -> dict[PeerId, Neighbor]:
        served = {peer: each for peer, each in self.neighbors.items() if each.is_served}
        others = tuple(peer for peer in self.neighbors if peer not in served)
        return {peer: self.neighbors[peer] for peer in routing(sources, others)} | served


def unit_bytes(unit: Unverified) -> int:
    """Return about how many bytes a unit takes on a link."""
    tails = unit.tails
    return (len(tails[0]) if len(tails) == 1 else sum(map(len, tails))) + 2 * len(tails) + 180


def unit_record(kind: Kind, verified: Verified) -> Record:
    """Return a trace record for a whole unit that is ours or was checked."""
    unit = verified.unit
    count = len(unit.tails)
    return Record(kind, unit.topic, verified.head, unit.device, unit.seq, count, bytes=unit_bytes(unit))


class SpreadDue(TopicTimer, frozen=True, gc=False):
    """A unit has waited long enough: time to pass it on."""

    head: EventId


class Suppression:
    """The units of one topic that wait to be passed on."""

    def __init__(self, topic: TopicId, flood: Flood, delay: float, out: Outbox) -> None:
        self._topic = topic
        self._flood = flood
        self._delay = delay
        self._out = out
        self._waiting: dict[EventId, tuple[Verified, Card, list[PeerId], int, int]] = {}

    def spread(
        self, verified: Verified, card: Card, sources: tuple[PeerId, ...], hops: int, age_us: int, now: float
    ) -> None:
        """Pass a unit on to all but its sources, at once or after the delay."""
        if not self._delay:
            self._flood.spread(verified, card, sources, hops, age_us, now, self._out)
            return
        self._waiting[verified.head] = (verified, card, list(sources), hops, age_us)
        self._out.set_timer(self._delay, SpreadDue(self._topic, verified.head))

    def note_source(self, unit: Unverified, peer: PeerId) -> None:
        """Note that a neighbour has sent a unit that waits."""
        for waiting in self._waiting.values():
            if waiting[0].unit == unit:
                waiting[2].append(peer)

    def spread_waiting(self, head: EventId, now: float) -> None:
        """Pass on a unit that has waited long enough."""
        waiting = self._waiting.pop(head, None)
        if waiting is None:
            return
        verified, card, sources, hops, age_us = waiting
        waited_us = int(self._delay * 1_000_000)
        self._flood.spread(verified, card, tuple(sources), hops, age_us + waited_us, now, self._out)

    def __bool__(self) -> bool:
        return bool(self._waiting)
