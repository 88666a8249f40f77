"""Units from peers: seen before or not, forged or not, allowed in at all; then the intake judges them."""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import EventId, PeerId
from linnet.core.reasons import Reason
from linnet.event.event import Unverified
from linnet.identity.cards import Card
from linnet.rooms.arrival import Arrival
from linnet.rooms.content import CONTROL_KINDS, MEMBER, REVOCATION, Member, Membership, content_of, member_key
from linnet.rooms.event_flow import Passing
from linnet.rooms.messages import Refused
from linnet.rooms.room_setup import Parts
from linnet.rooms.ticket import check_unexpired
from linnet.trace.records import Kind, Record

_STRANGERS = 64
"""Events of people who are none of the room, that may wait for control events that we lack."""


class _NotGreeted(RemoteError):
    """Somebody who is none of the room, as far as is known, brings what only members may."""


class Taking:
    """The door of one room."""

    def __init__(self, parts: Parts, passing: Passing) -> None:
        self._parts = parts
        self._out = parts.out
        self._passing = passing
        self._room = parts.id
        self.asked: dict[PeerId, None] = {}
        """Peers that show us the room while we join it."""
        self.heard_out: dict[PeerId, tuple[EventId, ...]] = {}
        """Peers with whom we differ about who is in the room: they were asked for their control events
        beyond these heads."""
        self._strangers: dict[PeerId, EventId] = {}
        """Memberships of people who are none of the room, that wait for what they build on."""

    def take(
        self,
        units: Iterable[Unverified],
        cards: Iterable[Card],
        source: PeerId,
        now: float,
        hops: int = 1,
        age_us: int = 0,
    ) -> None:
        """Take units from a peer, whatever brought them."""
        # What was hidden for its time comes before what may follow it.
        self._passing.reveal(now)
        known = self.heeds(source) or source in self.heard_out
        for card in cards:
            if not known and card.device_key != source:
                continue  # Strangers speak for themselves alone, and fill nobody's book.
            try:
                self._parts.context.cards.learn(card)
            except RemoteError as error:
                self._out.record(
                    Record(Kind.REJECTED, self._room, peer=source, reason=error.reason, note="card")
                )
                self._out.blame(source, error.reason)
        for unit in units:
            self._take_one(unit, source, hops, age_us, now)

    def _take_one(self, unit: Unverified, source: PeerId, hops: int, age_us: int, now: float) -> None:
        try:
            head = self._parts.intake.head(unit)
            if self._parts.intake.knows(head):
                whose = (self._room, head, unit.device, unit.seq)
                self._out.record(Record(Kind.DUPLICATE, *whose, peer=source, hops=hops))
                return
            if not self.heeds(source) and source not in self.heard_out:
                self._is_own(unit, source)
            arrival = self._parts.intake.check(unit, source, hops, age_us)
            self._at_the_door(arrival, source, now)
        except InvalidEvent as error:
            self._reject_forged(source, unit, error)
            return
        except RemoteError as error:
            # Somebody who has not greeted says no word on the event, which may come another way.
            about = None if isinstance(error, _NotGreeted) else unit
            self.refuse(source, about, error.reason, error.detail)
            self._out.blame(source, error.reason)
            return
        event = arrival.event
        whose = (self._room, event.id, event.device, event.seq)
        self._out.record(Record(Kind.RECEIVED, *whose, peer=source, hops=hops, note=event.kind))
        self._passing.pass_on(self._parts.intake.take(arrival, now), now)

    def heeds(self, source: PeerId) -> bool:
        """Whether a peer is of the room, or was turned to by ourselves."""
        return source in self._parts.guests.by_peer or self._is_asked(source)

    def handle_link_down(self, peer: PeerId) -> None:
        """Forget a peer whose link is gone."""
        self.asked.pop(peer, None)
        self.heard_out.pop(peer, None)

    def reject_unasked(self, peer: PeerId, what: str) -> None:
        """Record news or an answer of somebody who is none of the room: not looked at, and not answered."""
        self._out.record(Record(Kind.REJECTED, self._room, peer=peer, reason=Reason.NOT_A_MEMBER, note=what))

    def _is_own(self, unit: Unverified, source: PeerId) -> None:
        """Before any signature is checked: a stranger brings what its own device has signed."""
        card = self._parts.context.cards.find(unit.author, unit.device)
        if card is None or card.device_key != source:
            raise _NotGreeted(Reason.NOT_A_MEMBER, "greet first")

    def _at_the_door(self, arrival: Arrival, source: PeerId, now: float) -> None:
        """Who is not of the room may bring one thing: its own membership, if it is allowed right now.

        A device that was revoked may contest that by a revocation of its own, which resolution judges: a room
        without a relay has no other door for it. What fails here leaves nothing behind. What cannot be judged
        yet may wait, one of each.
        """
        if self.heeds(source):
            return
        event, control = arrival.event, self._parts.control
        if source in self.heard_out and event.kind in CONTROL_KINDS:
            return
        view = control.view()
        joins = event.kind == MEMBER and event.tail.key == member_key(event.author)
        contests = event.kind == REVOCATION and view.is_revoked(event.author, event.device)
        if not joins and not contests:
            banned = view.membership(event.author) is Membership.BAN
            raise _NotGreeted(Reason.BANNED if banned else Reason.NOT_A_MEMBER, "greet first")
        content = content_of(event.kind, event.body)
        if isinstance(content, Member) and content.ticket is not None:
            check_unexpired(content.ticket, now)
        if control.missing(event.tail.control or ()):
            self._wait(event.id, source)
            return
        refusal = control.judge(event) or control.doubt(event)
        if refusal is not None:
            raise RemoteError(refusal.reason, refusal.rule)

    def _wait(self, event: EventId, source: PeerId) -> None:
        waits = self._parts.intake.order.waits
        self._strangers = {peer: own for peer, own in self._strangers.items() if waits(own)}
        if source in self._strangers or len(self._strangers) >= _STRANGERS:
            raise RemoteError(Reason.QUEUE_FULL, "it builds on what is not known here")
        self._strangers[source] = event

    def _is_asked(self, source: PeerId) -> bool:
        """Whether we turned to this peer ourselves: a relay, or who shows us the room as we join."""
        return self._parts.control.view().is_relay(source) or source in self.asked

    def _reject_forged(self, source: PeerId, unit: Unverified, error: InvalidEvent) -> None:
        record = Record(
            Kind.REJECTED,
            self._room,
            device=unit.device,
            seq=unit.seq,
            peer=source,
            reason=error.reason,
            note=error.detail[:100],
        )
        self._out.record(record)
        self._out.blame(source, error.reason)

    def refuse(self, peer: PeerId, unit: Unverified | None, reason: Reason, detail: str) -> None:
        """Tell a peer that an event of its is not taken, or that it is told nothing, and why."""
        event = None if unit is None else self._parts.intake.head(unit)
        self._out.record(
            Record(Kind.REJECTED, self._room, event, peer=peer, reason=reason, note=detail[:100])
        )
        self._out.send(peer, Refused(self._room, event, reason, detail[:200]))
