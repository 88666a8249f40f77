"""Sender-side suppression: do not send a unit to a neighbour that has just sent it itself.

A unit waits for a moment before it is passed on; whoever sends it meanwhile is skipped. This saves
duplicates and costs delay at every hop, so it is off unless it is asked for. Plain flooding leaves
d - 2 duplicates at a node; the measurements of Juslenius 2021 (section 5.3.1) lie a little below.
"""

from __future__ import annotations

from linnet.core.effects import SetTimer
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.timers import Tick
from linnet.delivery.flood import Flood, FloodEffect
from linnet.event.event import Unverified, Verified
from linnet.identity.cards import Card

OWNER = "suppression"


class Suppression:
    """Units of one topic that wait to be passed on."""

    def __init__(self, topic: TopicId, flood: Flood, delay: float) -> None:
        self._topic = topic
        self._flood = flood
        self._delay = delay
        self._waiting: dict[EventId, tuple[Verified, Card, list[PeerId], int, int]] = {}

    def spread(
        self, verified: Verified, card: Card, source: PeerId, hops: int, age_us: int, now: float
    ) -> list[FloodEffect] | list[SetTimer[Tick]]:
        """Pass a unit on, at once or after the moment."""
        if not self._delay:
            return self._flood.spread(verified, card, (source,), hops, age_us, now)
        self._waiting[verified.head] = (verified, card, [source], hops, age_us)
        return [SetTimer(self._delay, Tick(OWNER, "spread", self._topic + verified.head))]

    def heard(self, unit: Unverified, peer: PeerId) -> None:
        """A neighbour has sent what we have already."""
        for waiting in self._waiting.values():
            if waiting[0].unit == unit:
                waiting[2].append(peer)

    def fired(self, head: EventId, now: float) -> list[FloodEffect]:
        """The moment is over."""
        waiting = self._waiting.pop(head, None)
        if waiting is None:
            return []
        verified, card, sources, hops, age_us = waiting
        waited_us = int(self._delay * 1_000_000)
        return self._flood.spread(verified, card, tuple(sources), hops, age_us + waited_us, now)

    def __bool__(self) -> bool:
        return bool(self._waiting)
