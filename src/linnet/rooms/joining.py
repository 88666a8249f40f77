"""How a room is joined: its control DAG from whoever answers first, then our own join.

All contacts are tried at once, members and relays alike; the first page is taken, the rest are not needed.
"""

from __future__ import annotations

from typing import TypeAlias

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.identity.cards import Card
from linnet.rooms.messages import AskControl, ControlPage
from linnet.rooms.ticket import Ticket

OWNER = "joining"
_AGAIN = 3.0
"""Seconds without an answer after which everyone is asked again."""

JoiningEffect: TypeAlias = Send[AskControl] | Hold | Release | SetTimer[Tick] | CancelTimer[Tick]


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
    ) -> None:
        self.room = room
        self._card = card
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

    def begin(self, links: dict[PeerId, None], patience: float) -> list[JoiningEffect]:
        """Turn to everyone at once."""
        effects: list[JoiningEffect] = [
            Hold(contact.peer, contact.hints, self._purpose) for contact in self.contacts.values()
        ]
        for peer in self.contacts:
            if peer in links:
                effects += self.up(peer)
        return [*effects, SetTimer(patience, self._tick)]

    def up(self, peer: PeerId) -> list[JoiningEffect]:
        """A link is open."""
        if peer not in self.contacts or self.joined is not None:
            return []
        return [*self._ask(peer, ()), SetTimer(_AGAIN, self._again)]

    def again(self, links: dict[PeerId, None]) -> list[JoiningEffect]:
        """Nobody has shown the room for a while: a question or an answer may be lost."""
        if self.joined is not None:
            return [SetTimer(_AGAIN, self._again)]
        self.answering = None
        return [effect for peer in self.contacts if peer in links for effect in self.up(peer)]

    def down(self, peer: PeerId) -> None:
        """A link is gone; another contact may answer instead."""
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

    def more(self, peer: PeerId, heads: tuple[EventId, ...]) -> list[JoiningEffect]:
        """The next page, from where we are now."""
        return [*self._ask(peer, heads), SetTimer(_AGAIN, self._again)]

    def _ask(self, peer: PeerId, heads: tuple[EventId, ...]) -> list[JoiningEffect]:
        self._asked += 1
        return [Send(peer, AskControl(self.room, self._asked, heads, self.ticket, self._card))]

    def end(self) -> list[JoiningEffect]:
        """It is over, one way or the other."""
        timers = [CancelTimer(self._tick), CancelTimer(self._again)]
        return [*timers, *(Release(peer, self._purpose) for peer in self.contacts)]

    @property
    def _purpose(self) -> str:
        return f"join/{self.room.hex()}"

    @property
    def _tick(self) -> Tick:
        return Tick(OWNER, "patience", self.room)

    @property
    def _again(self) -> Tick:
        return Tick(OWNER, "again", self.room)
