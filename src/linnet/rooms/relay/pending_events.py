"""Events that wait at a relay for control events that it lacks.

An event says which control events its author knew. Without them nobody can say whether it is allowed, so
it waits while they are fetched (`control_fetch`), for a bounded time, among a bounded number.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from linnet.core.ids import EventId, PeerId
from linnet.core.limits import MIB
from linnet.event.event import Event, Verified
from linnet.identity.cards import Card
from linnet.rooms.relay.access_control import Caller

BYTES = 16 * MIB
"""Bytes of the events of one room that wait."""
SHARE = 4
"""One peer may fill a part in so many of what may wait, so that it cannot shut out the others."""


class Origin(NamedTuple):
    """Where an event came from, and which answer waits for it."""

    caller: Caller
    relay: bool
    """Whether it came from a relay of the room, by the link: then it is not forwarded."""
    request: int | None
    """The request that is to be answered; None: it was fetched."""


class PendingEvent:
    """An event that waits."""

    __slots__ = ("card", "missing", "origins", "size", "verified")

    def __init__(self, verified: Verified, card: Card, origin: Origin, missing: Iterable[EventId]) -> None:
        self.verified = verified
        self.card = card
        """Of the device that signed it."""
        self.origins = [origin]
        """Who waits for an answer about it; the first one brought it."""
        self.missing = dict.fromkeys(missing)
        self.size = sum(map(len, verified.unit.tails))

    @property
    def event(self) -> Event:
        """The event."""
        return self.verified.events[0]


class PendingEvents:
    """The waiting events of one room."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._events: dict[EventId, PendingEvent] = {}
        self._waiting: dict[EventId, dict[EventId, None]] = {}
        """Which events wait for a control event."""
        self._bytes = 0
        self._per_peer: dict[PeerId, int] = {}

    def __len__(self) -> int:
        return len(self._events)

    def count_of(self, peer: PeerId) -> int:
        """Events that this peer brought."""
        return self._per_peer.get(peer, 0)

    def add(self, pending: PendingEvent) -> bool:
        """Let an event wait; returns False if there is no room for it."""
        peer = pending.origins[0].caller.peer
        if (
            len(self._events) >= self._most
            or self._bytes + pending.size > BYTES
            or SHARE * self.count_of(peer) >= self._most
        ):
            return False
        self._events[pending.event.id] = pending
        self._bytes += pending.size
        self._per_peer[peer] = self.count_of(peer) + 1
        for each in pending.missing:
            self._waiting.setdefault(each, {})[pending.event.id] = None
        return True

    def get(self, event: EventId) -> PendingEvent | None:
        """The event, if it waits."""
        return self._events.get(event)

    def waiting_for(self, event: EventId) -> list[Event]:
        """The events that wait for this one."""
        return [self._events[each].event for each in self._waiting.get(event, ())]

    def take_ready(self, event: EventId) -> list[PendingEvent]:
        """Take out the events that need nothing else than a control event that is known now."""
        ready: list[PendingEvent] = []
        for each in self._waiting.pop(event, ()):
            pending = self._events[each]
            del pending.missing[event]
            if not pending.missing:
                ready.append(self._remove(each))
        return ready

    def give_up(self, events: Iterable[EventId]) -> list[PendingEvent]:
        """Take out the events that need control events which cannot be had."""
        needing = dict.fromkeys(each for event in events for each in self._waiting.get(event, ()))
        return [self._remove(each) for each in needing]

    def _remove(self, event: EventId) -> PendingEvent:
        pending = self._events.pop(event)
        self._bytes -= pending.size
        peer = pending.origins[0].caller.peer
        self._per_peer[peer] -= 1
        if not self._per_peer[peer]:
            del self._per_peer[peer]
        for each in pending.missing:
            waiting = self._waiting.get(each)
            if waiting is not None:
                waiting.pop(event, None)
                if not waiting:
                    del self._waiting[each]
        return pending
