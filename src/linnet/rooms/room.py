"""One room at a member: what comes in, what goes out, who is there."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from linnet.core.effects import AfterCommit, Send
from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import AuthorId, Contact, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.delivery import recovery
from linnet.delivery.messages import Data
from linnet.event.event import Verified
from linnet.overlay.notices import NeighborUp, OverlayNotice
from linnet.rooms import chunks, ledger, receipts, relay_notices, sync
from linnet.rooms.access.view import View
from linnet.rooms.announcing import Announcing
from linnet.rooms.answering import Answering
from linnet.rooms.arrival import Arrival
from linnet.rooms.catching_up import CatchingUp
from linnet.rooms.content import MEMBER, Member, Membership, body_of, member_key
from linnet.rooms.effects import RoomEffect, RoomPromise, RoomStep
from linnet.rooms.governing import Draft
from linnet.rooms.heeding import Heeding
from linnet.rooms.meeting import Meeting
from linnet.rooms.messages import Greet, RoomReceipt
from linnet.rooms.messages import Refused as RefusedMessage
from linnet.rooms.parts import Parts
from linnet.rooms.passing import Passing
from linnet.rooms.relay_notices import (
    Behind,
    Forgot,
    GiveMissing,
    GiveUnsent,
    Kept,
    NotKept,
    Page,
    RelayNotice,
)
from linnet.rooms.secrecy import guarding
from linnet.rooms.secrecy.guarding import Guarding
from linnet.rooms.taking import Taking
from linnet.rooms.ticket import Ticket
from linnet.trace.records import Kind, Record

JOINED = "joined"
LEFT = "left"
"""Notes of the records by which a trace tells when this node was of a room."""


class Room:
    """A room that this node is in, was in, or is joining."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.id = parts.id
        self.context = parts.context
        self.config = parts.config
        self.control = parts.control
        self.dag = parts.dag
        self.guests = parts.guests
        self.flood = parts.flood
        self.intake = parts.intake
        self.serving = parts.serving
        self.sync = parts.sync
        self.ledger = parts.ledger
        self.receipts = parts.receipts
        self.neighbors = parts.neighbors
        self.relays = parts.relays
        self.chunks = parts.chunks
        self.passing = Passing(parts)
        self.taking = Taking(parts, self.passing)
        self.meeting = Meeting(parts, self.passing, self.taking)
        self.announcing = Announcing(parts, self.meeting)
        self.answering = Answering(parts, self.taking)
        self.catching_up = CatchingUp(parts, self.passing, self.taking)
        self._heeding = Heeding(parts, self.passing, self.taking)
        secrecy = parts.secrecy
        self.guarding = None if secrecy is None else Guarding(parts, self.passing, secrecy)
        """The keeper of the room's keys; None if it is not encrypted."""
        self._seen_control: tuple[EventId, ...] = ()
        self._seen_events = 0
        self._seen_relays: tuple[PeerId, ...] = ()
        self._seen_joined: dict[AuthorId, None] = {}
        self._was_present = self._was_active = False
        self.is_open = True
        """Whether the node runs: once it stops nothing begins again, while its links go one by one."""

    @property
    def view(self) -> View:
        """The state as it is now."""
        return self.control.view()

    @property
    def membership(self) -> Membership:
        """How we stand to it."""
        return self.view.membership(self.context.author)

    @property
    def is_active(self) -> bool:
        """Whether we are in it."""
        return self.membership is Membership.JOIN

    @property
    def is_present(self) -> bool:
        """Whether others are to find us: we are in it, or have left and nobody knows it yet."""
        return self.is_active or self.parts.memory.leaving or self.parts.memory.lacks_control

    def begin(self, create: Verified, now: float) -> None:
        """The first event of a room that is new here."""
        self.intake.take(Arrival(create, None, 0, 0), now)
        self.parts.saw(create.events[0])

    def load(self, now: float) -> list[RoomEffect]:
        """Read the room back from the store."""
        effects, placed = self.parts.load(now)
        self._seen_control = self.control.heads
        self._seen_joined = dict.fromkeys(self.view.joined())
        self._seen_events = len(self.dag)
        self._was_present, self._was_active = self.is_present, self.is_active
        return self.settle([*effects, *self.passing.placed(placed, now)], now)

    def settle(self, effects: Iterable[RoomStep], now: float) -> list[RoomEffect]:
        """Take the notices of the use of relays out of what is asked for and heed them; then the state."""
        out: list[RoomEffect] = []
        waiting = deque(effects)
        while True:
            while waiting:
                effect = waiting.popleft()
                if isinstance(effect, Page | GiveUnsent | GiveMissing | Behind | Kept | NotKept | Forgot):
                    waiting.extendleft(reversed(self._heeding.heed(effect, now)))
                else:
                    out.append(effect)
            waiting.extend(self._changed(now) if self.is_open else ())
            if not waiting:
                return out

    # Links.

    def start(self, now: float) -> list[RoomStep]:
        """Turn to everyone who is known: members and relays at once; the first that answers helps."""
        if not self.is_present:
            return []
        named = self._named_relays()
        effects: list[RoomStep] = [*self.neighbors.relays(named, now), *self.neighbors.start(now)]
        effects += [*self.ledger.started(now), *self.relays.relays(named, now)]
        for peer in self.context.links:
            effects += self.link_up(peer, now)
        return [*effects, *self.announcing.arm(self.config.announce_period)]

    def stop(self, now: float) -> list[RoomEffect]:
        """Let go of everyone."""
        self._was_present = False
        self.guests.by_peer.clear()
        self.flood.neighbors.clear()
        effects: list[RoomStep] = [
            *self.sync.stop(),
            *self.receipts.stop(),
            *self.relays.stop(),
            *self.neighbors.stop(now),
            *self.chunks.stop(),
            *self.announcing.stop(),
            *(() if self.guarding is None else self.guarding.stop()),
        ]
        return [effect for effect in effects if not isinstance(effect, RelayNotice)]

    def link_up(self, peer: PeerId, now: float) -> list[RoomStep]:
        """A link is open: greet whoever is known to be of the room."""
        if not self.is_present or peer == self.context.peer:
            return []
        effects: list[RoomStep] = []
        if self.neighbors.knows(peer) or self.view.is_relay(peer):
            # A greeting first: whoever is asked for something must know who asks.
            effects.append(self.meeting.approach(peer))
        return [*effects, *self.relays.linked(peer, now)]

    def link_down(self, peer: PeerId, now: float) -> list[RoomStep]:
        """A link is gone."""
        self.guests.down(peer)
        self.flood.unlinked(peer)
        self.serving.down(peer)
        self.taking.down(peer)
        self.meeting.down(peer)
        self.catching_up.down(peer)
        return [
            *self.intake.order.down(peer, now),
            *self.sync.down(peer),
            *self.neighbors.down(peer, now),
            *self.relays.unlinked(peer, now),
            *self.chunks.down(peer),
        ]

    def on_greet(self, peer: PeerId, greet: Greet, now: float) -> list[RoomStep]:
        """Someone says that it is of the room."""
        was_here = peer in self.guests.by_peer
        if not self.is_present and not self.meeting.does_not_know(peer, greet):
            return self.meeting.greeted_outside(peer, greet)
        try:
            guest = self.guests.greeted(peer, greet, now)
        except RemoteError as error:
            if self.parts.memory.lacks_control:
                return self.meeting.ask_control(peer)
            refused = self.taking.refuse(peer, None, error.reason, error.detail)
            return [*refused, *self.meeting.hear_out(peer, greet, error.reason)]
        effects: list[RoomStep] = []
        if not guest.relay:
            self.flood.up(peer)
            contact = Contact(peer, greet.hints)
            effects += self.neighbors.greeted(peer, contact, guest.person, now)
        effects += self.neighbors.know(greet.contacts, now)
        if self.meeting.is_due(peer, greet):
            effects.append(Send(peer, self.meeting.greeting(answer=True)))
        if not guest.greeted:
            guest.greeted = True
            told = tuple(Send(peer, receipt) for receipt in self.receipts.all())
            if told:
                effects.append(AfterCommit(told))
        if not was_here:
            effects += [*self.intake.order.up(peer, now), *self.catching_up.ask_back(peer, now)]
        if not guest.relay and all(map(self.dag.satisfies, guest.heads)):
            self.parts.memory.newcomer = False  # Whatever this member has, we have.
        effects += self.sync.compare(peer, guest)
        self.chunks.up(peer)
        return effects

    # Events of others.

    def on_data(self, peer: PeerId, data: Data, now: float) -> list[RoomStep]:
        """An event on its way among those who are online."""
        cards = () if data.card is None else (data.card,)
        effects = self.taking.take((data.unit,), cards, peer, now, data.hops, data.age_us)
        if peer in self.guests.by_peer or not self.is_active:
            return effects
        return [*effects, *self.meeting.answer_stranger(peer, data)]

    # Questions and answers.

    def on_refused(self, peer: PeerId, message: RefusedMessage, now: float) -> list[RoomStep]:
        """A peer does not take an event of ours, or has nothing to say to us."""
        guest = self.guests.by_peer.get(peer)
        note = message.detail[:100]
        effects: list[RoomStep] = [
            Record(Kind.DROPPED, self.id, message.event, peer=peer, reason=message.reason, note=note)
        ]
        if guest is not None and message.event is not None:
            effects += self.ledger.refused(message.event, guest.person, message.reason, now)
        if message.event is None and self.view.is_relay(peer):
            effects += self.relays.refused(peer, message.reason, now)
        known = guest is not None or self.neighbors.knows(peer) or self.view.is_relay(peer)
        known = known or peer in self.taking.asked
        if message.event is None and self.is_present and known:
            effects += self.meeting.taken_for_stranger(peer, message.reason, now)
        return effects

    def on_receipt(self, peer: PeerId, receipt: RoomReceipt, now: float) -> list[RoomStep]:
        """Someone's word of how far it is."""
        if peer not in self.guests.by_peer:
            return self.taking.unasked(peer, "RoomReceipt")
        return [*self.passing.heard_receipt(peer, receipt, now)]

    # Joining.

    def joining_drafts(self, membership: Membership, ticket: Ticket | None) -> list[Draft]:
        """Our own membership."""
        key = member_key(self.context.author)
        return [Draft(MEMBER, key, body_of(Member(membership, None, ticket)))]

    def introduce(self, join: Verified, to: PeerId | None, now: float) -> list[RoomStep]:
        """Show our join to whoever has shown us the room, and greet."""
        effects: list[RoomStep] = self.start(now) if self.is_active else []
        if to is None or self.view.is_relay(to):
            return effects
        data = Data(join.unit, 1, 0, int(now * 1_000_000), self.context.card)
        shown: list[RoomPromise] = [Send(to, data), Send(to, self.meeting.greeting(answer=False))]
        return [*effects, AfterCommit(tuple(shown))]

    def introduce_again(self, to: PeerId, now: float) -> list[RoomStep]:
        """Nobody has answered our join: it, or the answer, may be lost."""
        if self.view.is_relay(to):
            return []
        return [*self.meeting.show_join(to, now), Send(to, self.meeting.greeting(answer=False))]

    # Timers.

    def fired(self, tick: Tick, now: float) -> list[RoomStep]:
        """A timer of this room has run out."""
        match tick.owner:
            case sync.OWNER:
                return [*self.sync.fired(tick)]
            case recovery.OWNER:
                return [*self.intake.order.fired(now, self.parts.sources)]
            case ledger.OWNER:
                late = self.ledger.fired(tick)
                return [] if late is None else [late[1], *self.parts.readers.overdue(late[0])]
            case receipts.OWNER:
                return [*self.receipts.fired(self.parts.sources, now)]
            case relay_notices.OWNER:
                return [*self.relays.fired(tick, now)]
            case guarding.OWNER:
                return self._guard(tick, now)
            case owner if owner in chunks.OWNERS:
                return [*self.chunks.fired(tick, now)]
            case _:
                return self.announcing.fired()

    def _guard(self, tick: Tick, now: float) -> list[RoomStep]:
        """It is time to see to the room's keys, if anything can be said."""
        try:
            return [] if self.guarding is None else self.guarding.fired(tick, now)
        except Refused as error:
            note = f"group: {error.detail[:80]}"
            return [Record(Kind.DROPPED, self.id, reason=error.reason, note=note)]

    def dial_failed(self, peer: PeerId, reason: Reason, now: float) -> list[RoomStep]:
        """A link could not be opened."""
        return [*self.neighbors.dial_failed(peer, now), *self.relays.dial_failed(peer, reason, now)]

    def noticed(self, notice: OverlayNotice, now: float) -> list[RoomStep]:
        """A tracker's graph says who is a neighbour."""
        effects: list[RoomStep] = [*self.neighbors.noticed(notice, now)]
        if isinstance(notice, NeighborUp) and notice.peer not in self.guests.by_peer:
            effects.append(self.meeting.approach(notice.peer))
        return effects

    def nearby(self, now: float) -> list[RoomStep]:
        """What may be said on local networks is another now: where nothing may, those there are gone."""
        there = self.neighbors.beside
        effects: list[RoomStep] = [*self.neighbors.settle(now)]
        beside = self.neighbors.beside
        for peer in there if not beside else ():
            effects += self.link_down(peer, now)
        return [*effects, *(self.meeting.approach(peer) for peer in beside if peer not in there)]

    # What follows from a change of state.

    def _changed(self, now: float) -> list[RoomStep]:
        """Act on the state if it is another than before."""
        effects: list[RoomStep] = []
        if self.relays.up != self._seen_relays:
            self._seen_relays = self.relays.up
            effects += self.chunks.relays(self._seen_relays, now)
        if self.parts.memory.overflowed and 2 * len(self.intake.order) <= self.config.waiting_events:
            self.parts.memory.overflowed = False
            again, placed = self.intake.offer_again(now)
            effects += [*again, *self.passing.placed(placed, now), *self.relays.read_anew()]
        effects += self.passing.reveal(now)
        grown = len(self.dag) > self._seen_events
        self._seen_events = len(self.dag)
        if grown and self.is_present:
            effects += self.announcing.arm(self.config.announce_delay)
        changed = self.control.heads != self._seen_control
        self._seen_control = self.control.heads
        if changed:
            effects += self._expel(now)
            effects += self._look_at_ourselves()
        if not self.is_present:
            return [*effects, *self.stop(now)] if self._was_present else effects
        if not self._was_present:
            self._was_present = True
            effects += self.start(now)
        speaks = not self.parts.memory.lacks_control and self.parts.silenced(now) is None
        if self.guarding is not None and speaks:
            effects += self.guarding.changed(now)
        if not changed:
            return effects
        for peer, greet in self.guests.admitted():
            effects += self.on_greet(peer, greet, now)
        named = self._named_relays()
        return [*effects, *self.neighbors.relays(named, now), *self.relays.relays(named, now)]

    def _look_at_ourselves(self) -> list[RoomStep]:
        """If we have left, by a word of this device, others have to learn it before we are gone."""
        own = self.view.get((MEMBER, member_key(self.context.author)))
        memory = self.parts.memory
        if self.is_active:
            memory.leaving = False
        elif self._was_active and own is not None and own.device == self.context.device:
            memory.leaving = self.membership is Membership.LEAVE and own.sender == self.context.author
        if self.is_active == self._was_active:
            return []
        self._was_active = self.is_active
        return [Record(Kind.CONTROL, self.id, note=JOINED if self.is_active else LEFT)]

    def _expel(self, now: float) -> list[RoomStep]:
        """Have nothing more to do with whoever is no longer of the room, here or away."""
        effects: list[RoomStep] = []
        joined = dict.fromkeys(self.view.joined())
        for person in self._seen_joined:
            if person not in joined and person != self.context.author:
                self.receipts.forget(person)
                effects += self.neighbors.expelled(person, now)
        for person in joined:
            if person not in self._seen_joined:
                effects += self.neighbors.admitted(person, now)
        self._seen_joined = joined
        for peer in self.guests.expel():
            self.flood.down(peer)
            self.serving.down(peer)
            effects += [*self.sync.down(peer), *self.intake.order.down(peer, now), *self.chunks.down(peer)]
            effects += self.neighbors.expelled(peer, now)
        return effects

    def _named_relays(self) -> tuple[Contact, ...]:
        """Relays that are named and have joined: before that they cannot serve yet."""
        view = self.view
        return tuple(
            Contact(peer, relay.hints)
            for peer, relay in view.relays()
            if view.membership(relay.person) is Membership.JOIN
        )
