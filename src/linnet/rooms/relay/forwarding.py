"""Forwards events from members to every other relay of a room once; events from relays go no further.

For each other relay, the log position up to which it has answered is kept, over outages and restarts of both
ends. Everything past it is sent again until it is answered; a relay that had it already says so. Whether an
event came from a peer or a relay is decided by the authenticated link, never by its author (Schichtholz 2024,
listing 3, read so that three relays make no loop).
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from msgspec import Struct

from linnet.core.ids import EventId, PeerId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.event.event import Unverified
from linnet.event.signing import recall_unit
from linnet.machine.outbox import Outbox
from linnet.rooms.commands import RelayStatus
from linnet.rooms.config import pause_after
from linnet.rooms.messages import RelayForward, RelayOutcome, RelayTaken, RoomTimer
from linnet.rooms.relay.event_cache import EventCache
from linnet.rooms.relay.mailbox import Pages
from linnet.trace.records import Kind, Record

_TRIES = 3
"""How often an event is sent again with the control events that the other relay needs to judge it."""

_FOR_NOW = frozenset({Reason.MISSING_DEPENDENCY, Reason.QUEUE_FULL})
"""Reasons that another try may overcome."""


class ForwardDue(RoomTimer, frozen=True, gc=False):
    """Timer: another relay of a room did not answer in time, or must be tried again."""

    peer: PeerId


class _Lane(Struct):
    """How far one other relay has been sent events."""

    hints: tuple[str, ...]
    position: int
    """The position up to which the relay has answered."""
    upto: int
    number: int = 0
    unanswered: dict[EventId, Unverified] = {}
    """The events that were sent and are not answered."""
    lacking: dict[EventId, Unverified] = {}
    """The events that it could not judge yet, and the control events that it needs for them."""
    tries: int = 0
    paused: bool = False
    """Whether the relay has refused our events for now, to be tried again later."""
    refusals: int = 0
    """How often it refused them in a row."""


class Forwarding:
    """Forwards the events of one room to its other relays, a lane for each."""

    def __init__(
        self,
        cells: Cells,
        cache: EventCache,
        pages: Pages,
        links: Container[PeerId],
        timeout: float,
        retry: float,
        out: Outbox,
    ) -> None:
        self._out = out
        self._cells = cells
        self._cache = cache
        self._pages = pages
        self._links = links
        self._timeout = timeout
        self._retry = retry
        self._space = f"relay.lane/{cache.room.hex()}"
        self._lanes: dict[PeerId, _Lane] = {}
        self.since = 0.0
        """The time of arrival before which no cached event is sent any more."""

    @property
    def relays(self) -> tuple[PeerId, ...]:
        """The other relays."""
        return tuple(self._lanes)

    def status(self) -> tuple[RelayStatus, ...]:
        """Return the status of the other relays, as far as we know it."""
        return tuple(
            RelayStatus(peer, lane.hints, peer in self._links, True, None, None, None)
            for peer, lane in self._lanes.items()
        )

    def set_relays(self, relays: Mapping[PeerId, tuple[str, ...]]) -> None:
        """Forward to these relays of the room. A new one gets the events that come from now on."""
        for peer in [peer for peer in self._lanes if peer not in relays]:
            del self._lanes[peer]
            self._cells.delete(self._space, peer)
            self._out.cancel_timer(ForwardDue(self._cache.room, peer))
            self._out.release(peer, self._purpose)
        for peer, hints in relays.items():
            lane = self._lanes.get(peer)
            if lane is None:
                kept = self._cells.get(self._space, peer)
                position = self._cache.end if kept is None else int.from_bytes(kept, "big")
                self._lanes[peer] = lane = _Lane(hints, position, position)
                self._write(peer, lane)
                self._out.hold(peer, hints, self._purpose)
            elif lane.hints != hints:
                lane.hints = hints
                self._out.hold(peer, hints, self._purpose)

    def begin_at(self, position: int) -> None:
        """Begin every lane at a position, so that our own join is forwarded."""
        for peer, lane in self._lanes.items():
            lane.position = lane.upto = position
            self._write(peer, lane)

    def forward_events(self) -> None:
        """Send the due events to every relay that owes us no answer."""
        if not self._lanes:
            self._cache.note_forwarded(self._cache.end)
        for peer in self._lanes:
            self._send_page(peer)

    def resume(self, peer: PeerId) -> None:
        """Forward to a relay that is linked or has greeted: it may serve the room by now."""
        lane = self._lanes.get(peer)
        if lane is not None:
            lane.paused = False
            self._send_page(peer)

    def handle_link_down(self, peer: PeerId) -> None:
        """Leave the events that a relay did not answer to the next link."""
        lane = self._lanes.get(peer)
        if lane is not None and lane.unanswered:
            lane.unanswered = {}
            lane.lacking = {}
            self._out.cancel_timer(ForwardDue(self._cache.room, peer))

    def expects_answer(self, peer: PeerId, request: int) -> bool:
        """Return whether an answer belongs to our last batch to this relay."""
        lane = self._lanes.get(peer)
        return lane is not None and request == lane.number and bool(lane.unanswered)

    def handle_taken(self, peer: PeerId, taken: RelayTaken) -> None:
        """Go on after a relay's answer to the events that were forwarded to it."""
        lane = self._lanes.get(peer)
        if lane is None or taken.request != lane.number or not lane.unanswered:
            return
        if taken.reason is not None:
            # It does not serve the room yet, or does not know us yet. The events wait here.
            lane.unanswered = {}
            lane.paused = True
            lane.refusals += 1
            record = Record(Kind.REJECTED, self._cache.room, peer=peer, reason=taken.reason, note="forward")
            self._out.record(record)
            pause = pause_after(lane.refusals, self._retry)
            self._out.set_timer(pause, ForwardDue(self._cache.room, peer))
            return
        lane.refusals = 0
        for outcome in taken.outcomes:
            unit = lane.unanswered.pop(outcome.event, None)
            if unit is not None:
                self._note_outcome(peer, lane, outcome, unit)
        if lane.unanswered:
            return
        if lane.lacking:
            self._send_lacking(peer, lane)
            return
        lane.position = lane.upto
        lane.tries = 0
        self._write(peer, lane)
        self._cache.note_forwarded(min(each.position for each in self._lanes.values()))
        self._out.cancel_timer(ForwardDue(self._cache.room, peer))
        self._send_page(peer)

    def try_again(self, peer: PeerId) -> None:
        """Send again the events that a relay did not answer in time, or refused before."""
        lane = self._lanes.get(peer)
        if lane is not None:
            lane.unanswered = {}
            lane.lacking = {}
            lane.paused = False
            self._send_page(peer)

    def stop(self) -> None:
        """Stop forwarding, and forget all positions."""
        self.set_relays({})

    def _send_page(self, peer: PeerId) -> None:
        lane = self._lanes[peer]
        if lane.unanswered or lane.paused or peer not in self._links:
            return
        placed = self._cache.from_peers(lane.position, self.since, self._pages.events)
        if not placed:
            return
        page = self._pages.cut_page(placed)
        lane.upto = page.last
        lane.lacking = {}
        self._send_units(peer, lane, dict(zip(page.ids, page.units, strict=True)))

    def _send_units(self, peer: PeerId, lane: _Lane, units: dict[EventId, Unverified]) -> None:
        lane.number += 1
        lane.unanswered = units
        cards = self._pages.cards_for(units.values())
        self._out.send(peer, RelayForward(self._cache.room, lane.number, tuple(units.values()), cards))
        for unit in units.values():
            event = recall_unit(unit).events[0]
            place = (event.id, event.device, event.seq)
            self._out.record(Record(Kind.SENT, self._cache.room, *place, peer=peer, note=event.kind))
        self._out.set_timer(self._timeout, ForwardDue(self._cache.room, peer))

    def _note_outcome(self, peer: PeerId, lane: _Lane, outcome: RelayOutcome, unit: Unverified) -> None:
        if outcome.cursor is not None:
            return
        if outcome.reason in _FOR_NOW and lane.tries < _TRIES:
            for each in outcome.missing:
                control = self._cache.unit(each, 0.0)
                if control is not None:
                    lane.lacking[each] = control
            lane.lacking[outcome.event] = unit
            return
        reason = outcome.reason or Reason.UNKNOWN
        self._out.record(
            Record(Kind.DROPPED, self._cache.room, outcome.event, peer=peer, reason=reason, note="forward")
        )

    def _send_lacking(self, peer: PeerId, lane: _Lane) -> None:
        lane.tries += 1
        units, lane.lacking = lane.lacking, {}
        self._send_units(peer, lane, units)

    def _write(self, peer: PeerId, lane: _Lane) -> None:
        self._cells.put(self._space, peer, lane.position.to_bytes(8, "big"))

    @property
    def _purpose(self) -> str:
        return f"relay {self._cache.room.hex()[:16]}"
