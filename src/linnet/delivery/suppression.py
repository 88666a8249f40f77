"""Sender-side suppression: do not send a unit to a neighbour that has just sent it itself.

A unit waits for a moment before it is passed on; whoever sends it meanwhile is skipped. This saves
duplicates and costs delay at every hop, so it is off unless it is asked for. Plain flooding leaves
d - 2 duplicates at a node; the measurements of Juslenius 2021 (section 5.3.1) lie a little below.
"""

from __future__ import annotations

from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.timers import Timer
from linnet.delivery.flood import Flood
from linnet.event.event import Unverified, Verified
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox


class SpreadDue(Timer, frozen=True, gc=False):
    """A unit has waited long enough and is to be passed on."""

    topic: TopicId
    head: EventId


class Suppression:
    """Units of one topic that wait to be passed on."""

    def __init__(self, topic: TopicId, flood: Flood, delay: float, out: Outbox) -> None:
        self._topic = topic
        self._flood = flood
        self._delay = delay
        self._out = out
        self._waiting: dict[EventId, tuple[Verified, Card, list[PeerId], int, int]] = {}

    def spread(
        self, verified: Verified, card: Card, source: PeerId, hops: int, age_us: int, now: float
    ) -> None:
        """Pass a unit on, at once or after the moment."""
        if not self._delay:
            self._out.extend(self._flood.spread(verified, card, (source,), hops, age_us, now))
            return
        self._waiting[verified.head] = (verified, card, [source], hops, age_us)
        self._out.set_timer(self._delay, SpreadDue(self._topic, verified.head))

    def note_source(self, unit: Unverified, peer: PeerId) -> None:
        """A neighbour has sent what we have already."""
        for waiting in self._waiting.values():
            if waiting[0].unit == unit:
                waiting[2].append(peer)

    def spread_waiting(self, head: EventId, now: float) -> None:
        """The moment is over: pass a unit on that waited."""
        waiting = self._waiting.pop(head, None)
        if waiting is None:
            return
        verified, card, sources, hops, age_us = waiting
        waited_us = int(self._delay * 1_000_000)
        spread = self._flood.spread(verified, card, tuple(sources), hops, age_us + waited_us, now)
        self._out.extend(spread)

    def __bool__(self) -> bool:
        return bool(self._waiting)
