"""Who is connected to a relay, what the current state of a room lets them ask, and how they are refused."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias, assert_never

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, Contact, DeviceId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.causal_messages import Given, Want
from linnet.delivery.context import Context
from linnet.event.event import Event
from linnet.identity.cards import Card, CardCheck, check_dates
from linnet.identity.keys import device_id
from linnet.machine.outbox import Outbox
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.access.view import View
from linnet.rooms.access.visiting import visit_allowed
from linnet.rooms.content import MEMBER, REVOCATION, Member, Membership, content_of, member_key
from linnet.rooms.messages import (
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
from linnet.rooms.relay.usage import Usage
from linnet.rooms.ticket import Ticket, check_unexpired
from linnet.trace.records import Kind, Record

HEADS = 256
"""Heads of the control DAG in one message."""


Request: TypeAlias = RelaySend | RelayForward | Resync | Want | AskControl | ChunkPut | ChunkWant
Answer: TypeAlias = RelayTaken | ResyncPage | Given | ControlPage | ChunkTaken | ChunkIs


class Caller(NamedTuple):
    """The device that a link or a request is authenticated to, and the person that it belongs to."""

    peer: PeerId
    person: AuthorId
    linked: bool = True
    """Whether it can be told something later; the HTTP face cannot."""

    @property
    def device(self) -> DeviceId:
        """The short name of its device."""
        return device_id(self.peer)


def why_not_member(view: View, caller: Caller) -> Reason | None:
    """The reason why a caller is not a member now, or None if it is one."""
    standing = view.membership(caller.person)
    if standing is Membership.BAN:
        return Reason.BANNED
    if standing is not Membership.JOIN:
        return Reason.NOT_A_MEMBER
    return Reason.CARD_REVOKED if view.is_revoked(caller.person, caller.device) else None


def why_not_reader(view: View, caller: Caller | None, asked: Want | ChunkWant | None = None) -> Reason | None:
    """The reason why a caller may not read: events are for members and relays, chunks for members alone."""
    if caller is None:
        return Reason.UNKNOWN_DEVICE
    if view.is_relay(caller.peer) and not isinstance(asked, ChunkWant):
        return None
    return why_not_member(view, caller)


def relay_at(view: View, peer: PeerId) -> Caller | None:
    """The relay at the other end of a link, if the room's state names it."""
    named = dict(view.relays()).get(peer)
    return None if named is None else Caller(peer, named.person)


def why_not_visitor(
    room: TopicId, view: View, caller: Caller | None, ticket: Ticket | None, check: CardCheck, now: float
) -> Reason | None:
    """The reason why a caller may not see the control DAG: only those who could join may."""
    if caller is None:
        return Reason.UNKNOWN_DEVICE
    if view.is_relay(caller.peer):
        return None
    refusal = visit_allowed(room, view, caller.person, caller.device, ticket, check, now)
    return None if refusal is None else refusal.reason


def why_not_sender(view: View, caller: Caller, event: Event) -> Reason | None:
    """The reason why a caller may not send an event: members may send any, others only their own membership.

    A device that was revoked may still contest that by a revocation of its own, which resolution judges.
    """
    reason = why_not_member(view, caller)
    if reason is Reason.CARD_REVOKED and event.kind == REVOCATION and event.author == caller.person:
        return None
    own = (
        event.kind == MEMBER and event.author == caller.person and event.tail.key == member_key(caller.person)
    )
    return None if reason is Reason.NOT_A_MEMBER and own else reason


def why_not_joiner(event: Event, caller: Caller, now: float) -> Reason | None:
    """The reason why a join is not accepted from the joiner itself: its ticket has expired.

    Asked only of those who come themselves. Among those who have the join already it is the time in the
    event that counts, alike everywhere.
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
        """The caller behind a link, by its greeting or by a valid card in its message."""
        known = self._cards.get(peer)
        if known is not None:
            is_revoked = self._book.revocation_of(known.person, known.device) is not None
            return None if is_revoked else Caller(peer, known.person)
        for card in cards:
            if card.device_key == peer:
                try:
                    return self.identify(peer, card, now)
                except RemoteError:
                    return None  # whoever asks is told that it is nobody
        return None

    def handle_link_down(self, peer: PeerId) -> None:
        """Forget who was at the other end of a link."""
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
        """Greetings of those who may be members by control events that they are being asked for."""
        self.seen: dict[AuthorId, float] = {}
        """When a device of a member asked for something; kept in memory alone."""

    @property
    def waiting(self) -> tuple[PeerId, ...]:
        """The peers whose greetings are not answered yet."""
        return tuple(self._waiting)

    def handle_greet(self, caller: Caller, greet: Greet, behind: bool, now: float) -> bool:
        """Take in who a peer is; returns whether it was greeted in turn.

        `behind`: the peer knows control events that we do not.
        """
        reason = self.why_not_visitor(caller, greet.ticket, now)
        if reason is not None and behind:
            self._waiting[caller.peer] = greet
            return False
        return self._answer_greet(caller, greet, reason, now)

    def answer_waiting(self, peer: PeerId, now: float) -> None:
        """Answer the greeting of a peer that has told all that it knows."""
        greet = self._waiting.pop(peer, None)
        if greet is not None:
            self.handle_greet(Caller(peer, greet.card.person), greet, False, now)

    def drop_outsiders(self) -> None:
        """Drop connected devices that a change of the room's state has put out."""
        view = self._dag.view()
        for peer, caller in list(self.here.items()):
            if not view.is_relay(peer) and why_not_member(view, caller) is not None:
                del self.here[peer]

    def note_seen(self, caller: Caller, now: float) -> None:
        """Note when a member asked for something."""
        if why_not_member(self._dag.view(), caller) is None:
            self.seen[caller.person] = now

    def handle_link_down(self, peer: PeerId) -> None:
        """Drop a peer whose link is gone."""
        self.here.pop(peer, None)
        self._waiting.pop(peer, None)

    def why_not_visitor(self, caller: Caller | None, ticket: Ticket | None, now: float) -> Reason | None:
        """The reason why a caller may not see the control DAG."""
        view, check = self._dag.view(), self._context.card_check
        return why_not_visitor(self._room, view, caller, ticket, check, now)

    def own_greeting(self, answer: bool) -> Greet:
        """Build our own greeting; `answer` marks it as the answer to another."""
        own = dict(self._dag.view().relays()).get(self._context.peer)
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
        """Contacts of the other relays. Contacts of members are left to the members."""
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
    """Refuse a request as a whole and record it; returns the answers."""
    peer = None if caller is None else caller.peer
    room = message.topic if isinstance(message, Want) else message.room
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
    """The record of an answer that nobody waits for, or not any more."""
    return Record(Kind.REJECTED, room, peer=peer, reason=Reason.STALE, note=type(answer).__name__)
