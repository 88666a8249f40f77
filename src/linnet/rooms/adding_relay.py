"""Asking a relay to serve a room, before it is named in the room's state."""

from __future__ import annotations

from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.identity.cards import CardCheck
from linnet.identity.text import Sort, to_text
from linnet.machine.outbox import Outbox
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

_AGAIN = 2.0
"""Seconds until the question is asked again."""


class RelayAnswerDue(Timer, frozen=True, gc=False):
    """A command to add a relay has waited for its answer as long as it would."""

    room: TopicId
    relay: PeerId


class RelayRepeatDue(Timer, frozen=True, gc=False):
    """A relay that was asked to serve a room has not answered for a while."""

    room: TopicId
    relay: PeerId


class AddingRelay:
    """One question to one relay."""

    def __init__(
        self,
        room: TopicId,
        request: int,
        contact: Contact,
        greet: Greet,
        contacts: tuple[Contact, ...],
        out: Outbox,
    ) -> None:
        self.room = room
        self._out = out
        self._greet = greet
        """Who asks."""
        self.request = request
        self.contact = contact
        self._contacts = contacts
        """Where the relay finds the control DAG."""

    def begin(self, links: dict[PeerId, None], patience: float) -> None:
        """Turn to the relay."""
        self._out.hold(self.contact.peer, self.contact.hints, self._purpose)
        self._out.set_timer(patience, RelayAnswerDue(self.room, self.contact.peer))
        self.ask_again(links)

    def ask(self) -> None:
        """Greet the relay and ask it, now that its link is open."""
        relay = self.contact.peer
        self._out.send(relay, self._greet)
        self._out.send(relay, RelayAsk(self.room, self.request, self._contacts[:64]))
        self._out.set_timer(_AGAIN, RelayRepeatDue(self.room, relay))

    def ask_again(self, links: dict[PeerId, None]) -> None:
        """Ask if there is a link: question or answer may have been lost."""
        if self.contact.peer in links:
            self.ask()

    def end(self) -> None:
        """Let go of the relay: it has answered, or has not."""
        relay = self.contact.peer
        self._out.cancel_timer(RelayAnswerDue(self.room, relay))
        self._out.cancel_timer(RelayRepeatDue(self.room, relay))
        self._out.release(relay, self._purpose)

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
        return f"adding relay {self.room.hex()[:16]}"
