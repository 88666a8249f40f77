"""Who is at the other end of a link, as a room sees it: a member, a relay, someone with a ticket, or nobody.

Nothing about a room is said to a peer before it has greeted and was found to be one of the room.
"""

from __future__ import annotations

from msgspec.structs import replace

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.delivery.cards import CardBook
from linnet.identity.cards import Card, CardCheck, check_card, check_dates
from linnet.identity.text import Sort, to_text
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.access.view import View
from linnet.rooms.access.visiting import visit_allowed
from linnet.rooms.content import Membership
from linnet.rooms.messages import Greet
from linnet.rooms.ticket import Ticket

_EARLY = 64
"""Greetings that are remembered until a join comes."""


class Guest:
    """A member's device or a relay, on an open link."""

    __slots__ = ("card", "control", "events", "greeted", "heads", "relay")

    def __init__(self, card: Card, relay: bool) -> None:
        self.card = card
        self.relay = relay
        self.heads: tuple[EventId, ...] = ()
        """Its heads, as it told last."""
        self.control: tuple[EventId, ...] = ()
        self.events = 0
        self.greeted = False
        """Whether it has had a greeting of ours on this link."""

    @property
    def person(self) -> AuthorId:
        """Whose device it is."""
        return self.card.person


class Guests:
    """The open links of one room, by peer."""

    def __init__(self, control: ControlDag, cards: CardBook, card_check: CardCheck = check_card) -> None:
        self._control = control
        self._cards = cards
        self._card_check = card_check
        self.by_peer: dict[PeerId, Guest] = {}
        self._early: dict[PeerId, Greet] = {}
        """Greetings of people whose join we do not know yet: it may come by another way."""

    @property
    def members(self) -> tuple[PeerId, ...]:
        """Devices of members that are here."""
        return tuple(peer for peer, guest in self.by_peer.items() if not guest.relay)

    def greeted(self, peer: PeerId, greet: Greet, now: float) -> Guest:
        """Take a greeting; `RemoteError` says why this peer is none of the room."""
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
        return guest

    def _wait(self, peer: PeerId, greet: Greet) -> None:
        self._early.pop(peer, None)
        self._early[peer] = greet
        if len(self._early) > _EARLY:
            del self._early[next(iter(self._early))]

    def admitted(self) -> list[tuple[PeerId, Greet]]:
        """Who greeted too early and is a member now; called when the state has changed."""
        joined = [
            (peer, replace(greet, answer=False))
            for peer, greet in self._early.items()
            if self.view.membership(greet.card.person) is Membership.JOIN
        ]
        for peer, _ in joined:
            del self._early[peer]
        return joined

    def check_card(self, peer: PeerId, card: Card) -> None:
        """Raise `RemoteError` unless a card is of the device at the other end, and its person's."""
        if card.device_key != peer:
            raise RemoteError(Reason.UNKNOWN_DEVICE, "the card is of another device than the link")
        self._cards.learn(card)

    def check(self, peer: PeerId, card: Card) -> bool:
        """Whether a device is a relay, or else a member's; `RemoteError` if it is neither."""
        relay = dict(self.view.relays()).get(peer)
        if relay is None:
            self.check_member(card)
        elif self.view.membership(relay.person) is Membership.BAN:
            raise RemoteError(Reason.BANNED, "the relay's person is banned")
        return relay is not None

    def check_member(self, card: Card) -> None:
        """Raise `RemoteError` unless the person is joined now and the device is theirs still."""
        view = self.view
        standing = view.membership(card.person)
        if standing is not Membership.JOIN:
            reason = Reason.BANNED if standing is Membership.BAN else Reason.NOT_A_MEMBER
            raise RemoteError(reason, f"{to_text(Sort.PERSON, card.person)} is {standing} in this room")
        if view.is_revoked(card.person, card.device):
            raise RemoteError(Reason.CARD_REVOKED, "the device was revoked in this room")

    def check_visitor(self, peer: PeerId, card: Card | None, ticket: Ticket | None, now: float) -> None:
        """Raise `RemoteError` unless the control DAG may be shown: to whoever could join by it."""
        view = self.view
        if view.is_relay(peer):
            return
        if card is None or card.device_key != peer:
            raise RemoteError(Reason.UNKNOWN_DEVICE, "no card of the link's own device")
        self._card_check(card)
        check_dates(card, now)
        refusal = visit_allowed(
            self._control.room, view, card.person, card.device, ticket, self._card_check, now
        )
        if refusal is not None:
            raise RemoteError(refusal.reason, refusal.rule)

    def expel(self) -> tuple[PeerId, ...]:
        """Forget whoever is no longer of the room; called when the state has changed."""
        gone: list[PeerId] = []
        for peer, guest in self.by_peer.items():
            try:
                if guest.relay != self.check(peer, guest.card):
                    gone.append(peer)  # A member that has become a relay, or a relay that is none any more.
            except RemoteError:
                gone.append(peer)
        for peer in gone:
            del self.by_peer[peer]
        return tuple(gone)

    def down(self, peer: PeerId) -> None:
        """A link is gone."""
        self.by_peer.pop(peer, None)
        self._early.pop(peer, None)

    @property
    def view(self) -> View:
        """The room's state as it is now."""
        return self._control.view()
