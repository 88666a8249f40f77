"""Events that wait at a relay for control events that it lacks.

An event says which control events its author knew. Without them nobody can say whether it is allowed, so
it waits while they are fetched (`linnet.rooms.relay.fetching`), for a bounded time, among a bounded number.
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


class Parked:
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


class Parking:
    """The waiting events of one room."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._parked: dict[EventId, Parked] = {}
        self._waiting: dict[EventId, dict[EventId, None]] = {}
        """Which events wait for a control event."""
        self._bytes = 0
        self._per_peer: dict[PeerId, int] = {}

    def __len__(self) -> int:
        return len(self._parked)

    def of(self, peer: PeerId) -> int:
        """Events that this peer brought."""
        return self._per_peer.get(peer, 0)

    def park(self, parked: Parked) -> bool:
        """Let an event wait; False if there is no room for it."""
        peer = parked.origins[0].caller.peer
        if (
            len(self._parked) >= self._most
            or self._bytes + parked.size > BYTES
            or SHARE * self.of(peer) >= self._most
        ):
            return False
        self._parked[parked.event.id] = parked
        self._bytes += parked.size
        self._per_peer[peer] = self.of(peer) + 1
        for each in parked.missing:
            self._waiting.setdefault(each, {})[parked.event.id] = None
        return True

    def get(self, event: EventId) -> Parked | None:
        """The event, if it waits."""
        return self._parked.get(event)

    def waited_for_by(self, event: EventId) -> list[Event]:
        """The events that wait for this one."""
        return [self._parked[each].event for each in self._waiting.get(event, ())]

    def settled(self, event: EventId) -> list[Parked]:
        """A control event is known now, whatever was thought of it: those that need wait no longer."""
        ready: list[Parked] = []
        for each in self._waiting.pop(event, ()):
            parked = self._parked[each]
            del parked.missing[event]
            if not parked.missing:
                ready.append(self._leave(each))
        return ready

    def give_up(self, events: Iterable[EventId]) -> list[Parked]:
        """These control events are not to be had: whatever needs them waits no longer."""
        needing = dict.fromkeys(each for event in events for each in self._waiting.get(event, ()))
        return [self._leave(each) for each in needing]

    def _leave(self, event: EventId) -> Parked:
        parked = self._parked.pop(event)
        self._bytes -= parked.size
        peer = parked.origins[0].caller.peer
        self._per_peer[peer] -= 1
        if not self._per_peer[peer]:
            del self._per_peer[peer]
        for each in parked.missing:
            waiting = self._waiting.get(each)
            if waiting is not None:
                waiting.pop(event, None)
                if not waiting:
                    del self._waiting[each]
        return parked
