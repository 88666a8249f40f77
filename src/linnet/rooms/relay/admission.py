"""Becoming a relay of a room, and ceasing to be one.

A member asks. If policy and capacity allow it, links to those who hold the control DAG are held and the
DAG is fetched, until the room's state names this device as a relay and lets its person in; then it joins.
Nobody answers, or the state never says so: it ends with a reason, and nothing is left behind. Once the state
names it no longer, it leaves, and lets go of all that it has kept. That it joins or leaves is the only thing
that a relay ever says in a room.
"""

from __future__ import annotations

from collections.abc import Container

from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import AuthorId, Contact, EventId, PeerId, TopicId
from linnet.core.limits import DEPENDENCIES
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.context import Context
from linnet.delivery.messages import Data
from linnet.event.event import Event, Tail, Unverified, Verified
from linnet.event.signing import recall_unit, sign_unit
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.config import RelayConfig, RelayPolicy
from linnet.rooms.content import CONTROL_KINDS, MEMBER, JoinRule, Member, Membership, body_of, member_key
from linnet.rooms.messages import AskControl, ControlPage, Refused, RelaySend
from linnet.rooms.relay.access_control import HEADS
from linnet.rooms.relay.event_cache import EventCache
from linnet.rooms.relay.ingest import Fresh, Turn
from linnet.rooms.relay.stored_chunks import StoredChunks
from linnet.rooms.relay.stored_receipts import StoredReceipts
from linnet.trace.records import Kind, Record

PATIENCE = 30.0
"""Seconds until the room's state has to name us: the asker writes it once we have said yes."""

LINGER = 5.0
"""Seconds that links stay once we serve the room: our join is written first, then sent along them."""

CONTACTS = 8
"""Contacts that are turned to: enough to find one, too few to make others dial strangers for sport."""
AT_ONCE = 32
"""Rooms that may be on their way in at the same time."""


class AdmissionDue(Timer, frozen=True, gc=False):
    """Those who may hold the control DAG of a room had the time to answer, and are to be asked again."""

    room: TopicId


class LingerDue(Timer, frozen=True, gc=False):
    """The links by which a relay came to a room have been held long enough after it joined."""

    room: TopicId


def why_not_taken(config: RelayConfig, person: AuthorId | None, rooms: int, kept: int) -> Reason | None:
    """Why a room of this person is not taken; whoever did not show a card is nobody."""
    if config.policy is RelayPolicy.ALLOW and person not in config.allow:
        return Reason.NOT_ALLOWED
    return Reason.QUOTA if rooms >= config.max_rooms or kept >= config.total_bytes else None


class Admission:
    """One room that was said yes to and is not served yet."""

    def __init__(
        self,
        room: TopicId,
        asker: PeerId,
        contacts: tuple[Contact, ...],
        context: Context,
        config: RelayConfig,
        max_control: int,
        out: Outbox,
    ) -> None:
        self.room = room
        self._out = out
        self._asker = asker
        self.contacts: dict[PeerId, tuple[str, ...]] = {
            contact.peer: contact.hints for contact in (Contact(asker), *contacts[:CONTACTS])
        }
        self.contacts.pop(context.peer, None)
        self._context = context
        self._config = config
        self._max_control = max_control
        self._dag: ControlDag | None = None
        self.units: list[Verified] = []
        """The control DAG as far as it came, causes first."""
        self._number = 0
        self._until = 0.0
        self._last_reason = Reason.TIMEOUT

    def begin(self, now: float) -> None:
        """Call everyone who may hold the control DAG."""
        self._until = now + PATIENCE
        for peer, hints in self.contacts.items():
            self._out.hold(peer, hints, self._purpose)
        self._ask_all()

    def ask_contact(self, peer: PeerId) -> None:
        """Ask a peer whose link is open now, or that may know more than before, if it is a contact."""
        if peer in self.contacts:
            self._ask(peer)

    def handle_page(self, peer: PeerId, page: ControlPage) -> None:
        """Take in control events of a contact, and ask it for more."""
        if peer not in self.contacts:
            return
        if page.reason is not None:
            self._last_reason = page.reason
            return
        cards = {card.person + card.device: card for card in page.cards}
        before = len(self.units)
        for unit in page.units:
            self._take_unit(peer, unit, cards)
        if page.more and len(self.units) > before:
            self._ask(peer)

    def handle_refusal(self, peer: PeerId, reason: Reason) -> None:
        """Note why a contact has nothing to say to us yet."""
        if peer in self.contacts:
            self._last_reason = reason

    @property
    def why_not(self) -> Reason | None:
        """Why we cannot serve the room yet; None: its state says that we may."""
        dag, context = self._dag, self._context
        if dag is None:
            return self._last_reason
        view = dag.view()
        named = dict(view.relays()).get(context.peer)
        if named is None or named.person != context.author:
            return Reason.NOT_A_RELAY
        standing = view.membership(context.author)
        if standing is Membership.BAN:
            return Reason.BANNED
        public = view.join_rule() is JoinRule.PUBLIC
        return None if public or standing in (Membership.INVITE, Membership.JOIN) else Reason.NOT_INVITED

    def ask_again(self, now: float) -> Reason | None:
        """Ask all contacts again, or give up; returns the reason then."""
        if now < self._until:
            self._ask_all()
            return None
        reason = self.why_not or Reason.TIMEOUT
        self._reject(self._asker, reason)
        if self._asker in self._context.links:
            detail = "the relay could not begin to serve the room"
            self._out.send(self._asker, Refused(self.room, None, reason, detail))
        self._out.cancel_timer(AdmissionDue(self.room))
        self.release_links()
        return reason

    def linger(self) -> None:
        """Hold the links a while after we serve the room: who is at the other ends is yet to hear of it."""
        self._out.cancel_timer(AdmissionDue(self.room))
        self._out.set_timer(LINGER, LingerDue(self.room))

    def release_links(self) -> None:
        """Hold the links to the contacts no longer."""
        for peer in self.contacts:
            self._out.release(peer, self._purpose)

    def _take_unit(self, peer: PeerId, unit: Unverified, cards: dict[bytes, Card]) -> None:
        try:
            self._learn(unit, cards)
        except RemoteError as error:
            self._reject(peer, error.reason)

    def _reject(self, peer: PeerId, reason: Reason) -> None:
        self._out.record(Record(Kind.REJECTED, self.room, peer=peer, reason=reason, note="admission"))

    def _learn(self, unit: Unverified, cards: dict[bytes, Card]) -> None:
        book = self._context.cards
        card = cards.get(unit.author + unit.device)
        if card is not None:
            book.learn(card)
        verified = self._context.verify(unit, book.card_for(unit.author, unit.device, None))
        event = verified.events[0]
        if self._dag is None:
            if TopicId(event.id) != self.room:
                raise InvalidEvent(Reason.MISSING_DEPENDENCY, "the create event comes first")
            self._dag = ControlDag(event, self._context.card_check)
        elif self._dag.knows(event.id):
            return
        elif len(verified.events) != 1 or event.kind not in CONTROL_KINDS or event.seq is None:
            raise InvalidEvent(Reason.MALFORMED, "no control event")
        elif self._dag.missing(event.tail.control or ()):
            raise InvalidEvent(Reason.MISSING_DEPENDENCY, "its control heads come first")
        elif len(self.units) >= self._max_control:
            raise InvalidEvent(Reason.QUOTA, f"more than {self._max_control} control events")
        else:
            refusal = self._dag.add(event)
            if refusal is not None:
                raise InvalidEvent(refusal.reason, refusal.rule)
        self.units.append(verified)

    def _ask_all(self) -> None:
        links = self._context.links
        for peer in self.contacts:
            if peer in links:
                self._ask(peer)
        self._out.set_timer(self._config.fetch_timeout, AdmissionDue(self.room))

    def _ask(self, peer: PeerId) -> None:
        self._number += 1
        heads: tuple[EventId, ...] = () if self._dag is None else self._dag.heads[:HEADS]
        self._out.send(peer, AskControl(self.room, self._number, heads, None, self._context.card))

    @property
    def _purpose(self) -> str:
        return f"admission {self.room.hex()[:16]}"


class OwnMembership:
    """Our own chain in one room."""

    def __init__(self, context: Context, dag: ControlDag, cache: EventCache, out: Outbox) -> None:
        self._context = context
        self._dag = dag
        self._cache = cache
        self._out = out

    @property
    def standing(self) -> Membership:
        """How we stand to the room."""
        return self._dag.view().membership(self._context.author)

    def say_membership(
        self,
        membership: Membership,
        turn: Turn,
        members: Container[PeerId],
        relays: Container[PeerId],
        now: float,
    ) -> None:
        """Join or leave, if the room lets us, and tell those who are here.

        Members get it as they get anything. The other relays get our join forwarded; a relay that leaves is
        a peer like others to them.
        """
        verified = self._make(membership, now)
        event = verified.events[0]
        refusal = self._dag.add(event)
        if refusal is not None:
            reason, note = refusal.reason, event.kind
            self._out.record(Record(Kind.REJECTED, event.topic, event.id, reason=reason, note=note))
            return
        position = self._cache.keep_control(verified, True, now)
        turn.fresh.append(Fresh(position, event.id, verified.unit, self._context.peer))
        turn.forwards = True
        turn.promise_record(
            Record(Kind.PUBLISHED, event.topic, event.id, event.device, event.seq, note=event.kind)
        )
        message = Data(verified.unit, 1, 0, int(now * 1_000_000), self._context.card)
        send = RelaySend(event.topic, 0, (verified.unit,), (self._context.card,))
        for peer in self._context.links:
            if peer in relays and membership is Membership.LEAVE:
                turn.promise_send(peer, send)
            elif peer in members and peer not in relays and peer != self._context.peer:
                turn.promise_send(peer, message)

    def _make(self, membership: Membership, now: float) -> Verified:
        """After all control events that we know."""
        context, dag = self._context, self._dag
        mine = [event for event in self._cache.control if self._is_ours(event)]
        last = max(map(self._event, mine), key=lambda event: event.seq or 0, default=None)
        heads = dag.heads[:DEPENDENCIES]
        named = [*map(self._event, heads), *(() if last is None else (last,))]
        height = 1 + max(event.tail.height or 0 for event in named)
        key, body = member_key(context.author), body_of(Member(membership))
        tail = Tail(heads, None, height, heads, MEMBER, key, int(now * 1000), None, body)
        seq, prev = (0, None) if last is None else ((last.seq or 0) + 1, last.id)
        return sign_unit(context.key, dag.room, context.author, context.device, seq, prev, (tail,))

    def _is_ours(self, event: EventId) -> bool:
        fact = self._dag.fact(event)
        return (fact.sender, fact.device) == (self._context.author, self._context.device)

    def _event(self, event: EventId) -> Event:
        unit = self._cache.unit(event, 0.0)
        if unit is None:
            raise AssertionError(f"the control event {event.hex()} is not in the log")
        return recall_unit(unit).events[0]


class RoomSweep:
    """Lets go of what is left of a room that is not served any more, a bounded part at a time, with records.

    It needs no control DAG, which may be gone in part after a restart.
    """

    def __init__(self, cache: EventCache, receipts: StoredReceipts, chunks: StoredChunks) -> None:
        self._cache = cache
        self._receipts = receipts
        self._chunks = chunks

    def forget_some(self) -> bool:
        """Let go of some of it; returns False if nothing was left."""
        self._receipts.retain(frozenset())
        had_chunks = self._chunks.expire_before(float("inf"), Reason.NOT_A_RELAY)
        return self._cache.forget_some(Reason.NOT_A_RELAY) or had_chunks
