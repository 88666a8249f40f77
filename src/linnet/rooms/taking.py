"""Units from peers: seen before or not, forged or not, allowed in at all; then the intake judges them."""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.effects import Blame, Send
from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.event.event import Unverified
from linnet.identity.cards import Card
from linnet.rooms.content import CONTROL_KINDS, MEMBER, Member, content_of
from linnet.rooms.effects import RoomStep
from linnet.rooms.intake import Arrival
from linnet.rooms.messages import Refused
from linnet.rooms.parts import Parts
from linnet.rooms.passing import Passing
from linnet.rooms.ticket import check_unexpired
from linnet.trace.records import Kind, Record


class Taking:
    """The door of one room."""

    def __init__(self, parts: Parts, passing: Passing) -> None:
        self._parts = parts
        self._passing = passing
        self._room = parts.id
        self.asked: dict[PeerId, None] = {}
        """Peers that show us the room while we join it."""

    def take(
        self,
        units: Iterable[Unverified],
        cards: Iterable[Card],
        source: PeerId,
        now: float,
        hops: int = 1,
        age_us: int = 0,
    ) -> list[RoomStep]:
        """Units from a peer, whatever brought them."""
        effects: list[RoomStep] = []
        for card in cards:
            try:
                self._parts.context.cards.learn(card)
            except RemoteError as error:
                effects.append(
                    Record(Kind.REJECTED, self._room, peer=source, reason=error.reason, note="card")
                )
                effects.append(Blame(source, error.reason))
        for unit in units:
            effects += self._take_one(unit, source, hops, age_us, now)
        return effects

    def _take_one(
        self, unit: Unverified, source: PeerId, hops: int, age_us: int, now: float
    ) -> list[RoomStep]:
        try:
            head = self._parts.intake.head(unit)
            if self._parts.intake.knows(head):
                return [
                    Record(Kind.DUPLICATE, self._room, head, unit.device, unit.seq, peer=source, hops=hops)
                ]
            arrival = self._parts.intake.check(unit, source, hops, age_us)
            self._at_the_door(arrival, source, now)
        except InvalidEvent as error:
            return self._forged(source, unit, error)
        except RemoteError as error:
            return self.refuse(source, unit, error.reason, error.detail)
        event = arrival.event
        received = Record(
            Kind.RECEIVED,
            self._room,
            event.id,
            event.device,
            event.seq,
            peer=source,
            hops=hops,
            note=event.kind,
        )
        effects, placed = self._parts.intake.take(arrival, now)
        if not placed and event.kind in CONTROL_KINDS and self._parts.control.knows(event.id):
            # It has no place yet, but others can judge it: pass it on.
            self._parts.author.early(event)
            return [received, *effects, *self._passing.spread(arrival, now)]
        return [received, *effects, *self._passing.placed(placed, now)]

    def _at_the_door(self, arrival: Arrival, source: PeerId, now: float) -> None:
        """Who is not of the room may bring one thing: its own membership, with a ticket that holds."""
        guest = self._parts.guests.by_peer.get(source)
        if guest is not None or self._is_asked(source):
            return
        event = arrival.event
        card = self._parts.context.cards.find(event.author, event.device)
        if event.kind != MEMBER or card is None or card.device_key != source:
            raise RemoteError(Reason.NOT_A_MEMBER, "greet first")
        content = content_of(event.kind, event.body)
        if isinstance(content, Member) and content.ticket is not None:
            check_unexpired(content.ticket, now)

    def _is_asked(self, source: PeerId) -> bool:
        """Whether we turned to this peer ourselves: a relay, or who shows us the room as we join."""
        return self._parts.control.view().is_relay(source) or source in self.asked

    def _forged(self, source: PeerId, unit: Unverified, error: InvalidEvent) -> list[RoomStep]:
        record = Record(
            Kind.REJECTED,
            self._room,
            device=unit.device,
            seq=unit.seq,
            peer=source,
            reason=error.reason,
            note=error.detail[:100],
        )
        return [record, Blame(source, error.reason)]

    def refuse(self, peer: PeerId, unit: Unverified | None, reason: Reason, detail: str) -> list[RoomStep]:
        """Tell a peer that an event of its is not taken, or that it is told nothing, and why."""
        event = None if unit is None else self._parts.intake.head(unit)
        record = Record(Kind.REJECTED, self._room, event, peer=peer, reason=reason, note=detail[:100])
        return [record, Send(peer, Refused(self._room, event, reason, detail[:200]))]
