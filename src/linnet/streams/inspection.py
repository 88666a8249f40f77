"""Inspection: finds out which neighbours of a stream pass on what they get, once something was missing.

A neighbour that a node feeds has nothing to send back, so its silence is no sign of anything. But a unit that
is held back from it for a moment reaches it over others, and then it sends that unit. So a node with a
suspicion holds back a unit now and then, from one neighbour at a time, for two seconds. A neighbour that
again and again does not send the unit either passes nothing on or gets nothing from elsewhere. It is of no
use in either case, and the tracker is asked for another one. Who is slow, asleep or lossy for a while stays.

Nothing is held back while all is well: as long as no lazy peer has to provide what neighbours did not.
"""

from __future__ import annotations

from msgspec import Struct

from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import TopicTimer
from linnet.delivery.flood import Flood
from linnet.event.event import Unverified, Verified
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox
from linnet.overlay.notices import ReplaceNeighbor
from linnet.trace.records import Kind, Record

SUSPICION = 300.0
"""Seconds for which neighbours are inspected after a lazy peer had to provide something."""
_PAUSE = 5.0
"""Seconds between two inspections: each may cost the neighbour a delay."""
_HELD = 2.0
"""Seconds for which a unit is held back."""
_LATE = 2.0
"""Seconds by which our own timer may be late; beyond that we slept, and the neighbour may have sent it."""
FAILURES = 6
FAILING = 90.0
"""How often, and for how many seconds at least, a neighbour must fail before it is replaced."""


class InspectionDue(TopicTimer, frozen=True, gc=False):
    """The unit that is held back from a neighbour was held back for long enough."""


class _Held(Struct, eq=False):
    """A unit that is held back from a neighbour."""

    peer: PeerId
    source: PeerId
    verified: Verified
    card: Card
    hops: int
    age_us: int
    since: float


class _Failing(Struct, eq=False):
    """A neighbour that did not send the units that were held back from it."""

    since: float
    times: int = 0


class Inspection:
    """Inspects the neighbours of one stream."""

    def __init__(self, topic: TopicId, flood: Flood, out: Outbox) -> None:
        self._topic = topic
        self._flood = flood
        self._out = out
        self._until = 0.0
        self._next_at = 0.0
        self._held: _Held | None = None
        self._turns: dict[PeerId, None] = {}
        """Neighbours that were inspected, the latest last."""
        self._failing: dict[PeerId, _Failing] = {}
        self.replaced = 0
        """Neighbours that were given up."""

    def suspect(self, now: float) -> None:
        """Inspect neighbours from now on for a while: one of them should have sent what was missing."""
        self._until = now + SUSPICION

    def hold_back(
        self, verified: Verified, card: Card, source: PeerId, hops: int, age_us: int, now: float
    ) -> tuple[PeerId, ...]:
        """Return the neighbour that is not sent this unit yet, if one is to be inspected now."""
        if self._held is not None or not 0.0 < self._until - now <= SUSPICION:
            return ()
        if 0.0 < self._next_at - now <= _PAUSE:
            return ()
        peer = self._whose_turn(source)
        if peer is None:
            return ()
        self._turns.pop(peer, None)
        self._turns[peer] = None
        self._next_at = now + _PAUSE
        self._held = _Held(peer, source, verified, card, hops, age_us, now)
        self._out.set_timer(_HELD, InspectionDue(self._topic))
        return (peer,)

    def note_unit(self, peer: PeerId, unit: Unverified, is_new: bool) -> None:
        """Note a unit that a neighbour sent: if it is new or the one held back, the neighbour is of use."""
        held = self._held
        is_held = held is not None and held.peer == peer and held.verified.unit.sig == unit.sig
        if is_held:
            self._held = None
            self._out.cancel_timer(InspectionDue(self._topic))
        if is_held or is_new:
            self._failing.pop(peer, None)

    def end(self, now: float) -> None:
        """Send the neighbour what was held back from it; if it fails for long, have it replaced."""
        held, self._held = self._held, None
        if held is None or held.peer not in self._flood.neighbors:
            return
        others = (held.source, *(peer for peer in self._flood.neighbors if peer != held.peer))
        age_us = held.age_us + int(max(0.0, now - held.since) * 1_000_000)
        self._flood.spread(held.verified, held.card, others, held.hops, age_us, now, self._out)
        if not 0.0 <= now - held.since <= _HELD + _LATE:
            return
        failing = self._failing.setdefault(held.peer, _Failing(now))
        failing.times += 1
        failing.since = min(failing.since, now)  # Our clock may have been set back.
        if failing.times >= FAILURES and now - failing.since >= FAILING:
            self._replace(held.peer, failing, now)

    def handle_neighbor_down(self, peer: PeerId) -> None:
        """Forget a neighbour."""
        self._failing.pop(peer, None)
        self._turns.pop(peer, None)

    def failures(self, peer: PeerId) -> int:
        """Return how often in succession a neighbour did not send what was held back from it."""
        failing = self._failing.get(peer)
        return 0 if failing is None else failing.times

    def stop(self) -> None:
        """Stop inspecting."""
        self._held = None
        self._out.cancel_timer(InspectionDue(self._topic))

    def _whose_turn(self, source: PeerId) -> PeerId | None:
        """Return the neighbour that was inspected longest ago, among those that an overlay named."""
        flood = self._flood
        fit = [
            peer
            for peer, each in flood.neighbors.items()
            if peer != source and peer not in flood.grafted and not (each.is_served or each.congested)
        ]
        fresh = next((peer for peer in fit if peer not in self._turns), None)
        return fresh or next((peer for peer in self._turns if peer in fit), None)

    def _replace(self, peer: PeerId, failing: _Failing, now: float) -> None:
        self.replaced += 1
        self.suspect(now)  # The next one may be no better.
        note = f"sent none of {failing.times} units that were held back from it: replaced"
        self._out.record(Record(Kind.OVERLAY, self._topic, peer=peer, reason=Reason.SILENT, note=note))
        self._out.notify(ReplaceNeighbor(self._topic, peer))
