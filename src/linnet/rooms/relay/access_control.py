"""Access control of a relay: the cards of its callers, their rights by a room's state, and refusals."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias, assert_never

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, Contact, DeviceId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.delivery.messages import Given, Want
from linnet.event.event import Event
from linnet.identity.cards import Card, CardCheck, check_dates
from linnet.identity.keys import device_id
from linnet.machine.outbox import Outbox
from linnet.rooms.auth.control_graph import ControlDag
from linnet.rooms.auth.event_auth import Visitor, visit_allowed
from linnet.rooms.auth.room_state import View
from linnet.rooms.event_types import MEMBER, REVOCATION, Member, Membership, content_of, member_key
from linnet.rooms.invitations import Ticket, check_unexpired
from linnet.rooms.messages import (
    HEADS,
    AskControl,
    ChunkIs,
    ChunkPut,
    ChunkTaken,
    ChunkWant,
    ControlPage,
    Greet,
    Refused,
    RelayForward,
    RelaySend,
    RelayTaken,
    Resync,
    ResyncPage,
)
from linnet.rooms.relay.event_index import Usage
from linnet.trace.records import Kind, Record

Request: TypeAlias = RelaySend | RelayForward | Resync | Want | AskControl | ChunkPut | ChunkWant
Answer: TypeAlias = RelayTaken | ResyncPage | Given | ControlPage | ChunkTaken | ChunkIs


class Caller(NamedTuple):
    """The device that a link or a request is authenticated to, and the person that it belongs to."""

    peer: PeerId
    person: AuthorId
    linked: bool = True
    """Whether it can be sent something later; a caller over HTTP cannot."""

    @property
    def device(self) -> DeviceId:
        """The short name of its device."""
        return device_id(self.peer)


def why_not_member(view: View, caller: Caller) -> Reason | None:
    """Return the reason why a caller is not a member now, or None if it is one."""
    standing = view.membership(caller.person)
    if standing is Membership.BAN:
        return Reason.BANNED
    if standing is not Membership.JOIN:
        return Reason.NOT_A_MEMBER
    return Reason.CARD_REVOKED if view.is_revoked(caller.person, caller.device) else None


def why_not_reader(view: View, caller: Caller | None, asked: Want | ChunkWant | None = None) -> Reason | None:
    """Return why a caller may not read, or None: events are for members and relays, chunks for members."""
    if caller is None:
        return Reason.UNKNOWN_DEVICE
    if view.is_relay(caller.peer) and not isinstance(asked, ChunkWant):
        return None
    return why_not_member(view, caller)


def relay_at(view: View, peer: PeerId) -> Caller | None:
    """Return the relay at the other end of a link, if the room's state names it."""
    named = view.relay_of(peer)
    return None if named is None else Caller(peer, named.person)


def why_not_visitor(
    view: View, caller: Caller | None, ticket: Ticket | None, check: CardCheck, now: float
) -> Reason | None:
    """Return why a caller may not see the control DAG, or None: only people who could join may."""
    if caller is None:
        return Reason.UNKNOWN_DEVICE
    if view.is_relay(caller.peer):
        return None
    refusal = visit_allowed(Visitor(caller.person, caller.device, ticket), view, check, now)
    return None if refusal is None else refusal.reason


def why_not_sender(view: View, caller: Caller, event: Event) -> Reason | None:
    """Return why a caller may not send an event, or None: non-members may send only their own membership.

    A revoked device may still contest that by a revocation of its own, which resolution judges.
    """
    reason = why_not_member(view, caller)
    if reason is Reason.CARD_REVOKED and event.kind == REVOCATION and event.author == caller.person:
        return None
    own = (
        event.kind == MEMBER and event.author == caller.person and event.tail.key == member_key(caller.person)
    )
    return None if reason is Reason.NOT_A_MEMBER and own else reason


def why_not_joiner(event: Event, caller: Caller, now: float) -> Reason | None:
    """Return why a join is not accepted from the joiner itself, or None: its ticket has expired.

    This applies only to joiners that send their own join. Among members and relays that have the join, the
    time in the event counts, alike everywhere.
    """
    if event.kind != MEMBER or event.author != caller.person:
        return None
    content = content_of(event.kind, event.body)
    if not isinstance(content, Member) or content.ticket is None:
        return None
    try:
        check_unexpired(content.ticket, now)
    except RemoteError as error:
        return error.reason
    return None


class Visitors:
    """Maps the open links of a relay to the cards that their peers have shown."""

    def __init__(self, context: Context) -> None:
        self._book = context.cards
        self._check = context.card_check
        self._cards: dict[PeerId, Card] = {}

    def identify(self, peer: PeerId, card: Card, now: float) -> Caller:
        """Accept the card of a linked peer; raises `RemoteError` if it is not valid for this link now."""
        if card.device_key != peer:
            raise RemoteError(Reason.UNKNOWN_DEVICE, "the card is of another device than the link")
        self._check(card)
        check_dates(card, now)
        if self._book.revocation_of(card.person, card.device) is not None:
            raise RemoteError(Reason.CARD_REVOKED, "the person revoked this device")
        self._cards[peer] = card
        return Caller(peer, card.person)

    def find_caller(self, peer: PeerId, cards: tuple[Card, ...], now: float) -> Caller | None:
        """Return the caller behind a link, by its greeting or by a valid card in its message, or None."""
        known = self._cards.get(peer)
        if known is not None:
            is_revoked = self._book.revocation_of(known.person, known.device) is not None
            return None if is_revoked else Caller(peer, known.person)
        for card in cards:
            if card.device_key == peer:
                try:
                    return self.identify(peer, card, now)
                except RemoteError:
                    return None  # The peer is told that its device is unknown.
        return None

    def handle_link_down(self, peer: PeerId) -> None:
        """Forget the card of a peer whose link is gone."""
        self._cards.pop(peer, None)


class Presence:
    """Tracks which devices of one room are connected, and answers their greetings."""

    def __init__(self, room: TopicId, context: Context, dag: ControlDag, usage: Usage, out: Outbox) -> None:
        self._room = room
        self._out = out
        self._context = context
        self._dag = dag
        self._usage = usage
        self.here: dict[PeerId, Caller] = {}
        """Devices of members, and relays, that have greeted on open links."""
        self._waiting: dict[PeerId, Greet] = {}
        """Greetings of peers that may be members by control events that we are asking them for."""
        self.seen: dict[AuthorId, float] = {}
        """The time of each member's last request, by any device; kept in memory only."""

    @property
    def waiting(self) -> tuple[PeerId, ...]:
        """The peers whose greetings are not answered yet."""
        return tuple(self._waiting)

    def handle_greet(self, caller: Caller, greet: Greet, behind: bool, now: float) -> bool:
        """Take in a peer's greeting; return whether we greeted it in turn.

        `behind` says that the peer knows control events that we lack.
        """
        reason = self.why_not_visitor(caller, greet.ticket, now)
        if reason is not None and behind:
            self._waiting[caller.peer] = greet
            return False
        return self._answer_greet(caller, greet, reason, now)

    def answer_waiting(self, peer: PeerId, now: float) -> None:
        """Answer the greeting of a peer that has sent all the control events it knows."""
        greet = self._waiting.pop(peer, None)
        if greet is not None:
            self.handle_greet(Caller(peer, greet.card.person), greet, False, now)

    def drop_outsiders(self) -> None:
        """Drop connected devices that a change of the room's state has excluded."""
        view = self._dag.view()
        for peer, caller in list(self.here.items()):
            if not view.is_relay(peer) and why_not_member(view, caller) is not None:
                del self.here[peer]

    def note_seen(self, caller: Caller, now: float) -> None:
        """Note the time of a member's request."""
        if why_not_member(self._dag.view(), caller) is None:
            self.seen[caller.person] = now

    def handle_link_down(self, peer: PeerId) -> None:
        """Drop a peer whose link is gone."""
        self.here.pop(peer, None)
        self._waiting.pop(peer, None)

    def why_not_visitor(self, caller: Caller | None, ticket: Ticket | None, now: float) -> Reason | None:
        """Return why a caller may not see the control DAG; None if it may."""
        view, check = self._dag.view(), self._context.card_check
        return why_not_visitor(view, caller, ticket, check, now)

    def own_greeting(self, answer: bool) -> Greet:
        """Build our own greeting; `answer` marks it as the answer to another."""
        own = self._dag.view().relay_of(self._context.peer)
        return Greet(
            self._room,
            self._context.card,
            () if own is None else own.hints,
            (),
            self._dag.heads[:HEADS],
            self._usage.events,
            True,
            self.contacts(),
            None,
            answer,
        )

    def contacts(self) -> tuple[Contact, ...]:
        """Return contacts of the other relays. Only members tell those of members."""
        others = ((peer, relay) for peer, relay in self._dag.view().relays() if peer != self._context.peer)
        return tuple(Contact(peer, relay.hints) for peer, relay in others)[:64]

    def _answer_greet(self, caller: Caller, greet: Greet, reason: Reason | None, now: float) -> bool:
        peer = caller.peer
        if reason is not None:
            self._out.record(Record(Kind.REJECTED, self._room, peer=peer, reason=reason, note="greet"))
            self._out.send(peer, Refused(self._room, None, reason, "not of this room"))
            return False
        self.note_seen(caller, now)
        view = self._dag.view()
        if view.is_relay(peer) or why_not_member(view, caller) is None:
            self.here[peer] = caller
        if greet.answer:
            return False
        self._out.send(peer, self.own_greeting(answer=True))
        return True


def refuse_request(message: Request, reason: Reason, caller: Caller | None, out: Outbox) -> list[Answer]:
    """Refuse a request as a whole and record it; return the answers."""
    peer = None if caller is None else caller.peer
    room = message.topic
    if isinstance(message, Resync):
        out.record(Record(Kind.RESYNC, room, peer=peer, reason=reason, note="reject-resync"))
    else:
        out.record(Record(Kind.REJECTED, room, peer=peer, reason=reason, note=type(message).__name__))
    match message:
        case RelaySend() | RelayForward():
            return [RelayTaken(room, message.request, (), reason)]
        case Resync():
            return [ResyncPage(room, message.request, (), (), (), (), None, False, None, (), reason)]
        case Want():
            return [Given(room, message.request, (), (), message.ids, reason)]
        case AskControl():
            return [ControlPage(room, message.request, (), (), False, (), (), reason)]
        case ChunkPut():
            return [ChunkTaken(room, message.digest, reason)]
        case ChunkWant():
            return [ChunkIs(room, digest, None, reason) for digest in message.digests]
        case _:
            assert_never(message)


def stale_answer(room: TopicId, peer: PeerId, answer: ControlPage | Given | RelayTaken) -> Record:
    """Make the record of an answer that nothing waits for (any more)."""
    return Record(Kind.REJECTED, room, peer=peer, reason=Reason.STALE, note=type(answer).__name__)
