"""How a room is joined: its control DAG from whoever answers first, then our own join.

All contacts are tried at once, members and relays alike; the first page is taken, the rest are not needed.
"""

from __future__ import annotations

from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox
from linnet.rooms.messages import AskControl, ControlPage
from linnet.rooms.ticket import Ticket

_AGAIN = 3.0
"""Seconds without an answer after which everyone is asked again."""


class JoinEndDue(Timer, frozen=True, gc=False):
    """A command to join a room has waited as long as it would."""

    room: TopicId


class JoinRepeatDue(Timer, frozen=True, gc=False):
    """Nobody has answered for a while who was asked for a room that is joined."""

    room: TopicId


class Joining:
    """One attempt to join a room."""

    def __init__(
        self,
        room: TopicId,
        request: int,
        ticket: Ticket | None,
        contacts: tuple[Contact, ...],
        knock: bool,
        card: Card,
        out: Outbox,
    ) -> None:
        self.room = room
        self._card = card
        self._out = out
        self.request = request
        """The command that is to be answered."""
        self.ticket = ticket
        self.knock = knock
        self.contacts = {contact.peer: contact for contact in contacts}
        self.answering: PeerId | None = None
        """Whose pages are taken."""
        self.joined: EventId | None = None
        """Our join, once it is made; then somebody's word is waited for."""
        self.opened = False
        """Whether the room is here only because of this attempt."""
        self.last_reason: Reason | None = None
        """Why somebody would not show the room, to be told if nobody does."""
        self._asked = 0

    def begin(self, links: dict[PeerId, None], patience: float) -> None:
        """Turn to everyone at once."""
        for contact in self.contacts.values():
            self._out.hold(contact.peer, contact.hints, self._purpose)
        for peer in self.contacts:
            if peer in links:
                self.handle_link_up(peer)
        self._out.set_timer(patience, JoinEndDue(self.room))

    def handle_link_up(self, peer: PeerId) -> None:
        """Ask a contact for the room, now that its link is open."""
        if peer in self.contacts and self.joined is None:
            self.ask_page(peer, ())

    def ask_again(self, links: dict[PeerId, None]) -> None:
        """Ask everyone again: a question or an answer may be lost."""
        if self.joined is not None:
            self._out.set_timer(_AGAIN, JoinRepeatDue(self.room))
            return
        self.answering = None
        for peer in self.contacts:
            if peer in links:
                self.handle_link_up(peer)

    def handle_link_down(self, peer: PeerId) -> None:
        """Let another contact answer instead of one that is gone."""
        if self.answering == peer and self.joined is None:
            self.answering = None

    def wants(self, peer: PeerId, page: ControlPage) -> bool:
        """Whether a page is one that is waited for; notes why there is none otherwise."""
        if peer not in self.contacts or self.joined is not None:
            return False
        if page.reason is not None:
            self.last_reason = page.reason
            return False
        if self.answering is None:
            self.answering = peer
        return self.answering == peer

    def is_taken(self, page: ControlPage) -> bool:
        """Whether a page tells that our join or knock is in the room."""
        return self.joined is not None and self.joined in page.heads

    def ask_page(self, peer: PeerId, heads: tuple[EventId, ...]) -> None:
        """Ask for the next page, from where we are now."""
        self._asked += 1
        self._out.send(peer, AskControl(self.room, self._asked, heads, self.ticket, self._card))
        self._out.set_timer(_AGAIN, JoinRepeatDue(self.room))

    def end(self) -> None:
        """Let go of everyone: it is over, one way or the other."""
        self._out.cancel_timer(JoinEndDue(self.room))
        self._out.cancel_timer(JoinRepeatDue(self.room))
        for peer in self.contacts:
            self._out.release(peer, self._purpose)

    @property
    def _purpose(self) -> str:
        return f"join/{self.room.hex()}"
