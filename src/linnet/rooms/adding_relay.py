"""Asking a relay to serve a room, before it is named in the room's state."""

from __future__ import annotations

from typing import TypeAlias

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.identity.cards import CardCheck
from linnet.identity.text import Sort, to_text
from linnet.rooms.access.view import View
from linnet.rooms.content import (
    MEMBER,
    RELAY,
    JoinRule,
    Member,
    Membership,
    Relay,
    body_of,
    member_key,
)
from linnet.rooms.governing import Draft
from linnet.rooms.messages import Greet, RelayAnswer, RelayAsk

OWNER = "adding relay"
_AGAIN = 2.0
"""Seconds until the question is asked again."""

AddingEffect: TypeAlias = Send[Greet | RelayAsk] | Hold | Release | SetTimer[Tick] | CancelTimer[Tick]


class AddingRelay:
    """One question to one relay."""

    def __init__(
        self, room: TopicId, request: int, contact: Contact, greet: Greet, contacts: tuple[Contact, ...]
    ) -> None:
        self.room = room
        self._greet = greet
        """Who asks."""
        self.request = request
        self.contact = contact
        self._contacts = contacts
        """Where the relay finds the control DAG."""

    def begin(self, links: dict[PeerId, None], patience: float) -> list[AddingEffect]:
        """Turn to the relay."""
        held: list[AddingEffect] = [
            Hold(self.contact.peer, self.contact.hints, self._purpose),
            SetTimer(patience, self._tick),
        ]
        return [*held, *self.up()] if self.contact.peer in links else held

    def up(self) -> list[AddingEffect]:
        """Its link is open."""
        ask = RelayAsk(self.room, self.request, self._contacts[:64])
        return [
            Send(self.contact.peer, self._greet),
            Send(self.contact.peer, ask),
            SetTimer(_AGAIN, self._again),
        ]

    def again(self, links: dict[PeerId, None]) -> list[AddingEffect]:
        """It has not answered for a while: question or answer may be lost."""
        return self.up() if self.contact.peer in links else []

    def end(self) -> list[AddingEffect]:
        """It has answered, or has not."""
        return [CancelTimer(self._tick), CancelTimer(self._again), Release(self.contact.peer, self._purpose)]

    def check(self, answer: RelayAnswer, card_check: CardCheck) -> None:
        """Raise `RemoteError` unless the relay's card says whose it is: naming a person silences them."""
        card = answer.card
        if card is None or card.device_key != self.contact.peer or card.person != answer.person:
            raise RemoteError(Reason.UNKNOWN_DEVICE, "the relay shows no card of the person it names")
        card_check(card)

    def named(self, answer: RelayAnswer, view: View) -> list[Draft]:
        """The events that make it a relay: its person is invited, and it is named."""
        key = to_text(Sort.DEVICE, self.contact.peer)
        drafts = [Draft(RELAY, key, body_of(Relay(True, answer.person, self.contact.hints)))]
        standing = view.membership(answer.person)
        if standing not in (Membership.JOIN, Membership.INVITE) and view.join_rule() is not JoinRule.PUBLIC:
            drafts.insert(0, Draft(MEMBER, member_key(answer.person), body_of(Member(Membership.INVITE))))
        return drafts

    @property
    def _purpose(self) -> str:
        return f"{OWNER} {self.room.hex()[:16]}"

    @property
    def _tick(self) -> Tick:
        return Tick(OWNER, "patience", self.room + self.contact.peer)

    @property
    def _again(self) -> Tick:
        return Tick(OWNER, "again", self.room + self.contact.peer)
