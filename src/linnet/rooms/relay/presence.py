"""Who of a room is at the other end of a link to its relay, and what they are told on greeting."""

from __future__ import annotations

from linnet.core.effects import Send
from linnet.core.ids import AuthorId, Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.messages import Greet, Refused
from linnet.rooms.relay.door import Caller, why_not_member, why_not_visitor
from linnet.rooms.relay.serving import HEADS
from linnet.rooms.relay.usage import Usage
from linnet.rooms.ticket import Ticket
from linnet.trace.records import Kind, Record

PresenceEffect = Send[Greet | Refused] | Record


class Presence:
    """The people of one room, as far as they are here."""

    def __init__(self, room: TopicId, context: Context, dag: ControlDag, usage: Usage) -> None:
        self._room = room
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
        """Who waits for an answer to a greeting."""
        return tuple(self._waiting)

    def greeted(self, caller: Caller, greet: Greet, behind: bool, now: float) -> list[PresenceEffect]:
        """Somebody says who it is; `behind`: it knows control events that we do not."""
        reason = self.why_not_visitor(caller, greet.ticket, now)
        if reason is not None and behind:
            self._waiting[caller.peer] = greet
            return []
        return self._answer(caller, greet, reason, now)

    def settled(self, peer: PeerId, now: float) -> list[PresenceEffect]:
        """A peer has told all that it knows: its greeting is answered."""
        greet = self._waiting.pop(peer, None)
        return [] if greet is None else self.greeted(Caller(peer, greet.card.person), greet, False, now)

    def changed(self) -> None:
        """The state has changed: who is no longer of the room is not here any more."""
        view = self._dag.view()
        for peer, caller in list(self.here.items()):
            if not view.is_relay(peer) and why_not_member(view, caller) is not None:
                del self.here[peer]

    def saw(self, caller: Caller, now: float) -> None:
        """Somebody asked for something."""
        if why_not_member(self._dag.view(), caller) is None:
            self.seen[caller.person] = now

    def down(self, peer: PeerId) -> None:
        """A link is gone."""
        self.here.pop(peer, None)
        self._waiting.pop(peer, None)

    def why_not_visitor(self, caller: Caller | None, ticket: Ticket | None, now: float) -> Reason | None:
        """Why the control DAG is not shown to somebody."""
        view, check = self._dag.view(), self._context.card_check
        return why_not_visitor(self._room, view, caller, ticket, check, now)

    def greeting(self, answer: bool) -> Greet:
        """Our own."""
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
        """The other relays. Where members were met last is theirs to tell."""
        others = ((peer, relay) for peer, relay in self._dag.view().relays() if peer != self._context.peer)
        return tuple(Contact(peer, relay.hints) for peer, relay in others)[:64]

    def _answer(
        self, caller: Caller, greet: Greet, reason: Reason | None, now: float
    ) -> list[PresenceEffect]:
        if reason is not None:
            record = Record(Kind.REJECTED, self._room, peer=caller.peer, reason=reason, note="greet")
            return [record, Send(caller.peer, Refused(self._room, None, reason, "not of this room"))]
        self.saw(caller, now)
        view = self._dag.view()
        if view.is_relay(caller.peer) or why_not_member(view, caller) is None:
            self.here[caller.peer] = caller
        return [] if greet.answer else [Send(caller.peer, self.greeting(answer=True))]
