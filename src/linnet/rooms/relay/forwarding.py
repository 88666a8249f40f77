"""What came from peers goes on to every other relay of the room, once; what came from relays does not.

Each other relay has a place in the log up to which it has answered, which outlives outages and restarts of
both ends. Past it everything is sent again until it is answered; who had it already says so. Who came from
where is decided by the authenticated link, never by an event's author (Schichtholz 2024, listing 3, read so
that three relays make no loop).
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.core.timers import Tick
from linnet.event.event import Unverified
from linnet.event.signing import recall_unit
from linnet.rooms.messages import RelayForward, RelayOutcome, RelayTaken
from linnet.rooms.relay.cache import Cache
from linnet.rooms.relay.paging import Pages
from linnet.rooms.results import RelayStatus
from linnet.trace.records import Kind, Record

OWNER = "relay.forwarding"
_TRIES = 3
"""Times that an event is sent again with what the other relay lacks to judge it."""

_FOR_NOW = frozenset({Reason.MISSING_DEPENDENCY, Reason.QUEUE_FULL})
"""Reasons that another try may overcome."""

ForwardEffect = Send[RelayForward] | Hold | Release | SetTimer[Tick] | CancelTimer[Tick] | Record


class _Lane:
    """The way to one other relay."""

    __slots__ = ("hints", "lacking", "number", "out", "paused", "position", "tries", "upto")

    def __init__(self, hints: tuple[str, ...], position: int) -> None:
        self.hints = hints
        self.position = position
        """It has answered for all up to here."""
        self.upto = position
        self.number = 0
        self.out: dict[EventId, Unverified] = {}
        """Events that were sent and are not answered."""
        self.lacking: dict[EventId, Unverified] = {}
        """Events that it could not judge yet."""
        self.tries = 0
        self.paused = False
        """Whether it was said to be of no use now, and is tried again later."""


class Forwarding:
    """The lanes of one room."""

    def __init__(
        self,
        room: TopicId,
        cells: Cells,
        cache: Cache,
        pages: Pages,
        links: Container[PeerId],
        timeout: float,
        retry: float,
    ) -> None:
        self._room = room
        self._cells = cells
        self._cache = cache
        self._pages = pages
        self._links = links
        self._timeout = timeout
        self._retry = retry
        self._space = f"relay.lane/{room.hex()}"
        self._lanes: dict[PeerId, _Lane] = {}
        self.since = 0.0
        """Nothing that was cached before this is sent any more."""

    @property
    def relays(self) -> tuple[PeerId, ...]:
        """The other relays."""
        return tuple(self._lanes)

    def status(self) -> tuple[RelayStatus, ...]:
        """The other relays, as far as we know them."""
        return tuple(
            RelayStatus(peer, lane.hints, peer in self._links, True, None, None, None)
            for peer, lane in self._lanes.items()
        )

    def targets(self, relays: Mapping[PeerId, tuple[str, ...]]) -> list[ForwardEffect]:
        """These are the room's other relays now. A new one gets what comes from now on."""
        effects: list[ForwardEffect] = []
        for peer in [peer for peer in self._lanes if peer not in relays]:
            del self._lanes[peer]
            self._cells.delete(self._space, peer)
            effects += [CancelTimer(self._tick(peer)), Release(peer, self._purpose)]
        for peer, hints in relays.items():
            lane = self._lanes.get(peer)
            if lane is None:
                kept = self._cells.get(self._space, peer)
                position = self._cache.end if kept is None else int.from_bytes(kept, "big")
                self._lanes[peer] = lane = _Lane(hints, position)
                self._write(peer, lane)
                effects.append(Hold(peer, hints, self._purpose))
            elif lane.hints != hints:
                lane.hints = hints
                effects.append(Hold(peer, hints, self._purpose))
        return effects

    def begin_at(self, position: int) -> None:
        """Every lane begins here: for what we say ourselves on joining."""
        for peer, lane in self._lanes.items():
            lane.position = lane.upto = position
            self._write(peer, lane)

    def pump(self) -> list[ForwardEffect]:
        """Send what there is to whoever waits for nothing."""
        if not self._lanes:
            self._cache.passed(self._cache.end)
        return [effect for peer in self._lanes for effect in self._send(peer)]

    def up(self, peer: PeerId) -> list[ForwardEffect]:
        """A link is open, or who was of no use has greeted: it may serve the room by now."""
        lane = self._lanes.get(peer)
        if lane is None:
            return []
        lane.paused = False
        return self._send(peer)

    def down(self, peer: PeerId) -> list[ForwardEffect]:
        """A link is gone; what was not answered is sent again over the next."""
        lane = self._lanes.get(peer)
        if lane is None or not lane.out:
            return []
        lane.out = {}
        lane.lacking = {}
        return [CancelTimer(self._tick(peer))]

    def expects(self, peer: PeerId, request: int) -> bool:
        """Whether an answer is one to what we sent."""
        lane = self._lanes.get(peer)
        return lane is not None and request == lane.number and bool(lane.out)

    def taken(self, peer: PeerId, taken: RelayTaken) -> list[ForwardEffect]:
        """An answer."""
        lane = self._lanes.get(peer)
        if lane is None or taken.request != lane.number or not lane.out:
            return []
        if taken.reason is not None:
            # It serves the room not yet, or does not know us yet. What is to be sent waits here.
            lane.out = {}
            lane.paused = True
            return [
                Record(Kind.REJECTED, self._room, peer=peer, reason=taken.reason, note="forward"),
                SetTimer(self._retry, self._tick(peer)),
            ]
        effects: list[ForwardEffect] = []
        for outcome in taken.outcomes:
            unit = lane.out.pop(outcome.event, None)
            if unit is not None:
                effects += self._outcome(peer, lane, outcome, unit)
        if lane.out:
            return effects
        if lane.lacking:
            return [*effects, *self._resend(peer, lane)]
        lane.position = lane.upto
        lane.tries = 0
        self._write(peer, lane)
        self._cache.passed(min(each.position for each in self._lanes.values()))
        return [*effects, CancelTimer(self._tick(peer)), *self._send(peer)]

    def fired(self, peer: PeerId) -> list[ForwardEffect]:
        """No answer in time, or it is time to try again."""
        lane = self._lanes.get(peer)
        if lane is None:
            return []
        lane.out = {}
        lane.lacking = {}
        lane.paused = False
        return self._send(peer)

    def stop(self) -> list[ForwardEffect]:
        """Forward nothing any more, and forget how far it went."""
        return self.targets({})

    def _send(self, peer: PeerId) -> list[ForwardEffect]:
        lane = self._lanes[peer]
        if lane.out or lane.paused or peer not in self._links:
            return []
        placed = self._cache.from_peers(lane.position, self.since, self._pages.events)
        if not placed:
            return []
        page = self._pages.of(placed)
        lane.upto = page.last
        lane.lacking = {}
        return self._post(peer, lane, dict(zip(page.ids, page.units, strict=True)))

    def _post(self, peer: PeerId, lane: _Lane, units: dict[EventId, Unverified]) -> list[ForwardEffect]:
        lane.number += 1
        lane.out = units
        message = RelayForward(
            self._room, lane.number, tuple(units.values()), self._pages.cards(units.values())
        )
        return [
            Send(peer, message),
            *(self._sent(peer, unit) for unit in units.values()),
            SetTimer(self._timeout, self._tick(peer)),
        ]

    def _sent(self, peer: PeerId, unit: Unverified) -> Record:
        event = recall_unit(unit).events[0]
        place = (event.id, event.device, event.seq)
        return Record(Kind.SENT, self._room, *place, peer=peer, note=event.kind)

    def _outcome(
        self, peer: PeerId, lane: _Lane, outcome: RelayOutcome, unit: Unverified
    ) -> list[ForwardEffect]:
        if outcome.cursor is not None:
            return []
        if outcome.reason in _FOR_NOW and lane.tries < _TRIES:
            for each in outcome.missing:
                control = self._cache.unit(each, 0.0)
                if control is not None:
                    lane.lacking[each] = control
            lane.lacking[outcome.event] = unit
            return []
        reason = outcome.reason or Reason.UNKNOWN
        return [Record(Kind.DROPPED, self._room, outcome.event, peer=peer, reason=reason, note="forward")]

    def _resend(self, peer: PeerId, lane: _Lane) -> list[ForwardEffect]:
        lane.tries += 1
        units, lane.lacking = lane.lacking, {}
        return self._post(peer, lane, units)

    def _write(self, peer: PeerId, lane: _Lane) -> None:
        self._cells.put(self._space, peer, lane.position.to_bytes(8, "big"))

    @property
    def _purpose(self) -> str:
        return f"relay {self._room.hex()[:16]}"

    def _tick(self, peer: PeerId) -> Tick:
        return Tick(OWNER, "again", self._room + peer)
