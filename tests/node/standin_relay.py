"""The least that can answer a relay's HTTP face: a list, and who may read it. It checks no event."""

from __future__ import annotations

from linnet.core.ids import AuthorId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.messages import Given, Want
from linnet.event.event import Event, Spot, Tail, Unverified
from linnet.event.signing import recall_unit, sign_unit
from linnet.identity.cards import Card
from linnet.node.relay_http import RelayIdentity
from linnet.peer.config import Identity
from linnet.rooms.commands import AskRelay, RelayReplies
from linnet.rooms.messages import (
    AskControl,
    ControlPage,
    RelayCursor,
    RelayForward,
    RelayInfo,
    RelayOutcome,
    RelaySend,
    RelayTaken,
    Resync,
    ResyncPage,
    Tombstone,
)
from linnet.testing.identities import known_identity

ROOM = TopicId(b"room" * 8)
EPOCH = b"epoch..1"
NOWHERE = EventId(b"none" * 8)
RELAY = known_identity("relay")
RELAY_IDENTITY = RelayIdentity(RELAY.peer, RELAY.author, 3600.0)


def room_unit(author: Identity, seq: int, body: bytes, prev: EventId | None = None) -> Unverified:
    """A unit of one event of this author in `ROOM`."""
    tail = Tail((NOWHERE,), None, 1, (NOWHERE,), "message", None, 0, None, body)
    return sign_unit(author.device, Spot(ROOM, author.author, author.card.device, seq, prev), (tail,)).unit


def id_of(unit: Unverified) -> EventId:
    """The id of its event."""
    return recall_unit(unit).head


class StandInRelay:
    """Keeps what members of `ROOM` send. Bodies name what goes wrong: ``refuse``, ``lack``, ``soft``."""

    def __init__(self, *members: Identity, relays: tuple[Identity, ...] = ()) -> None:
        self.members: dict[AuthorId, None] = {member.author: None for member in members}
        self.relays: dict[PeerId, None] = {relay.peer: None for relay in relays}
        self.kept: list[Unverified] = []
        self.cards: dict[Card, None] = {}
        self.oldest = 0
        self.tombstones: tuple[Tombstone, ...] = ()
        self.asked: list[AskRelay] = []

    async def __call__(self, question: AskRelay) -> RelayReplies:
        """Answer one request."""
        self.asked.append(question)
        match question.message:
            case RelayInfo():
                size = sum(len(unit.tails[0]) for unit in self.kept)
                return RelayReplies((RelayInfo(1, len(self.kept), size, 1 << 20, 0, request=False),))
            case RelaySend() as message:
                return RelayReplies((self._take(message, self._why_not(question, message.room)),))
            case RelayForward() as message:
                reason = None if question.peer in self.relays else Reason.NOT_A_RELAY
                return RelayReplies((self._take(message, reason),))
            case Resync() as message:
                return RelayReplies((self._page(message, self._why_not(question, message.room)),))
            case Want() as message:
                return RelayReplies((self._given(message, self._why_not(question, message.topic)),))
            case AskControl() as message:
                units, cards = tuple(self.kept), tuple(self.cards)
                reason = self._why_not(question, message.room)
                page = ControlPage(message.room, message.request, units, cards, False, (NOWHERE,), (), reason)
                return RelayReplies((page,))

    def _why_not(self, question: AskRelay, room: TopicId) -> Reason | None:
        if room != ROOM:
            return Reason.UNKNOWN_ROOM
        return None if question.person in self.members else Reason.NOT_A_MEMBER

    def _take(self, message: RelaySend | RelayForward, reason: Reason | None) -> RelayTaken:
        if reason is not None:
            return RelayTaken(message.room, message.request, (), reason)
        self.cards |= dict.fromkeys(message.cards)
        return RelayTaken(message.room, message.request, tuple(map(self._keep, message.units)), None)

    def _keep(self, unit: Unverified) -> RelayOutcome:
        event: Event = recall_unit(unit).events[0]
        if unit in self.kept:
            at = RelayCursor(EPOCH, self.kept.index(unit))
            return RelayOutcome(event.id, at, Reason.DUPLICATE, ())
        if event.body == b"refuse":
            return RelayOutcome(event.id, None, Reason.NO_POWER, ())
        if event.body == b"lack":
            return RelayOutcome(event.id, None, Reason.MISSING_DEPENDENCY, (NOWHERE,))
        self.kept.append(unit)
        soft = Reason.SOFT_FAILED if event.body == b"soft" else None
        return RelayOutcome(event.id, RelayCursor(EPOCH, len(self.kept) - 1), soft, ())

    def _page(self, message: Resync, reason: Reason | None) -> ResyncPage:
        oldest = RelayCursor(EPOCH, self.oldest)
        cursor = message.cursor or oldest
        if reason is None and (cursor.epoch != EPOCH or cursor.position < self.oldest):
            reason = Reason.CURSOR_EXPIRED
        if reason is not None:
            return ResyncPage(message.room, message.request, (), (), (), (), None, False, oldest, (), reason)
        end = min(len(self.kept), cursor.position + message.limit)
        return ResyncPage(
            message.room,
            message.request,
            tuple(self.kept[cursor.position : end]),
            tuple(self.cards),
            (),
            self.tombstones,
            RelayCursor(EPOCH, end),
            end < len(self.kept),
            oldest,
            (NOWHERE,),
            None,
        )

    def _given(self, message: Want, reason: Reason | None) -> Given:
        held = {id_of(unit): unit for unit in self.kept} if reason is None else {}
        units = tuple(held[event] for event in message.ids if event in held)
        unknown = tuple(event for event in message.ids if event not in held)
        if reason is None and unknown:
            reason = Reason.NOT_HELD
        return Given(message.topic, message.request, units, tuple(self.cards), unknown, reason)
