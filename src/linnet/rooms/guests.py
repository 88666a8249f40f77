"""Guests of a room: the peers that have greeted in it over open links, which are members' devices and relays.

A peer is told nothing about a room before it has greeted and was found to be a member's device or a relay.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.context import CardBook
from linnet.identity.cards import Card, CardCheck, check_dates
from linnet.identity.text import Sort, to_text
from linnet.machine.outbox import Outbox
from linnet.rooms.auth.control_graph import ControlDag
from linnet.rooms.auth.event_auth import Visitor, visit_allowed
from linnet.rooms.auth.room_state import View
from linnet.rooms.event_types import Membership
from linnet.rooms.invitations import Ticket
from linnet.rooms.messages import (
    AskControl,
    ControlPage,
    Greet,
    Refused,
    RelayAnswer,
    RelayAsk,
    RelayForward,
    RelaySend,
    RelayTaken,
    Resync,
    ResyncPage,
    RoomTopicMessage,
)
from linnet.trace.records import Kind, Record

_EARLY = 64
"""The most greetings that are remembered until a join comes."""


def reject_unknown_room(out: Outbox, ours: AuthorId, peer: PeerId, message: RoomTopicMessage) -> None:
    """Record a message about a room that is unknown here; answer a peer that asks or greets."""
    topic, unknown = message.topic, Reason.UNKNOWN_ROOM
    out.record(Record(Kind.REJECTED, topic, peer=peer, reason=unknown, note=type(message).__name__))
    match message:
        case AskControl(_, request):
            out.send(peer, ControlPage(topic, request, (), (), False, (), (), unknown))
        case Resync(_, request):
            out.send(peer, ResyncPage(topic, request, (), (), (), (), None, False, None, (), unknown))
        case RelaySend(_, request) | RelayForward(_, request):
            out.send(peer, RelayTaken(topic, request, (), unknown))
        case RelayAsk(_, request):
            out.send(peer, RelayAnswer(topic, request, Reason.NOT_A_RELAY, ours))
        case Greet():
            out.send(peer, Refused(topic, None, unknown, "this node is not in that room"))
        case _:
            pass


def reject_on_local_network(out: Outbox, peer: PeerId, room: TopicId) -> None:
    """Record a message about a room that is not allowed on the local network that it came from."""
    note = "a room that is not allowed on this local network"
    out.record(Record(Kind.REJECTED, room, peer=peer, reason=Reason.NOT_ALLOWED, note=note))


class Guest(Struct):
    """A member's device or a relay, on an open link."""

    card: Card
    relay: bool
    heads: tuple[EventId, ...] = ()
    """Its heads, as it last told us."""
    control: tuple[EventId, ...] = ()
    events: int = 0
    greeted: bool = False
    """Whether we have greeted it on this link."""
    compares: bool = False
    """Whether it understands questions about what relays have signed."""

    @property
    def person(self) -> AuthorId:
        """The person that the device belongs to."""
        return self.card.person


class Guests:
    """Admits the peers of one room by their greetings."""

    def __init__(self, control: ControlDag, cards: CardBook, card_check: CardCheck) -> None:
        self._control = control
        self._cards = cards
        self._card_check = card_check
        self.by_peer: dict[PeerId, Guest] = {}
        self._early: dict[PeerId, Greet] = {}
        """Greetings of people whose join we do not know yet: it may still come from another peer."""

    @property
    def members(self) -> tuple[PeerId, ...]:
        """The devices of members that have greeted, without relays."""
        return tuple(peer for peer, guest in self.by_peer.items() if not guest.relay)

    def admit(self, peer: PeerId, greet: Greet, now: float) -> Guest:
        """Admit a peer by its greeting; raises `RemoteError` if it is neither a member nor a relay."""
        self.check_card(peer, greet.card)
        check_dates(greet.card, now)
        if not self.view.is_relay(peer):
            self._wait(peer, greet)
        is_relay = self.check(peer, greet.card)
        self._early.pop(peer, None)
        guest = self.by_peer.get(peer)
        if guest is None:
            guest = self.by_peer[peer] = Guest(greet.card, is_relay)
        guest.card, guest.relay = greet.card, is_relay
        guest.heads, guest.control, guest.events = greet.heads, greet.control, greet.events
        guest.compares = greet.compares and not is_relay
        return guest

    def _wait(self, peer: PeerId, greet: Greet) -> None:
        self._early.pop(peer, None)
        self._early[peer] = greet
        if len(self._early) > _EARLY:
            del self._early[next(iter(self._early))]

    def take_admitted(self) -> list[tuple[PeerId, Greet]]:
        """Remove and return early greetings of present members; to be called when the state has changed."""
        joined = [
            (peer, replace(greet, answer=False))
            for peer, greet in self._early.items()
            if self.view.membership(greet.card.person) is Membership.JOIN
        ]
        for peer, _ in joined:
            del self._early[peer]
        return joined

    def check_card(self, peer: PeerId, card: Card) -> None:
        """Raise `RemoteError` unless a card is valid and is that of the device at the other end."""
        if card.device_key != peer:
            raise RemoteError(Reason.UNKNOWN_DEVICE, "the card is of another device than the link")
        self._cards.learn(card)

    def check(self, peer: PeerId, card: Card) -> bool:
        """Return whether a device is a relay rather than a member's; `RemoteError` if it is neither."""
        relay = self.view.relay_of(peer)
        if relay is None:
            self.check_member(card)
        elif self.view.membership(relay.person) is Membership.BAN:
            raise RemoteError(Reason.BANNED, "the relay's person is banned")
        return relay is not None

    def check_member(self, card: Card) -> None:
        """Raise `RemoteError` unless the person is joined now and has not revoked the device."""
        view = self.view
        standing = view.membership(card.person)
        if standing is not Membership.JOIN:
            reason = Reason.BANNED if standing is Membership.BAN else Reason.NOT_A_MEMBER
            raise RemoteError(reason, f"{to_text(Sort.PERSON, card.person)} is {standing} in this room")
        if view.is_revoked(card.person, card.device):
            raise RemoteError(Reason.CARD_REVOKED, "the device was revoked in this room")

    def check_visitor(self, peer: PeerId, card: Card | None, ticket: Ticket | None, now: float) -> None:
        """Raise `RemoteError` unless the peer may see the control DAG: as a relay, or as it could join."""
        view = self.view
        if view.is_relay(peer):
            return
        if card is None or card.device_key != peer:
            raise RemoteError(Reason.UNKNOWN_DEVICE, "no card of the link's own device")
        self._card_check(card)
        check_dates(card, now)
        refusal = visit_allowed(Visitor(card.person, card.device, ticket), view, self._card_check, now)
        if refusal is not None:
            raise RemoteError(refusal.reason, refusal.rule)

    def expel_outsiders(self) -> tuple[PeerId, ...]:
        """Remove the guests that are no longer in the room; to be called when the state has changed."""
        gone: list[PeerId] = []
        for peer, guest in self.by_peer.items():
            try:
                if guest.relay != self.check(peer, guest.card):
                    gone.append(peer)  # A member's device that has become a relay, or the reverse.
            except RemoteError:
                gone.append(peer)
        for peer in gone:
            del self.by_peer[peer]
        return tuple(gone)

    def handle_link_down(self, peer: PeerId) -> None:
        """Forget a peer whose link is gone."""
        self.by_peer.pop(peer, None)
        self._early.pop(peer, None)

    @property
    def view(self) -> View:
        """The room's current state."""
        return self._control.view()
