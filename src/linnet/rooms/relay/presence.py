"""Who of a room is at the other end of a link to its relay, and what they are told on greeting."""

from __future__ import annotations

from linnet.core.ids import AuthorId, Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.machine.outbox import Outbox
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.messages import Greet, Refused
from linnet.rooms.relay.door import Caller, why_not_member, why_not_visitor
from linnet.rooms.relay.serving import HEADS
from linnet.rooms.relay.usage import Usage
from linnet.rooms.ticket import Ticket
from linnet.trace.records import Kind, Record


class Presence:
    """The people of one room, as far as they are here."""

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
        """Who waits for an answer to a greeting."""
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
        """Count those as here no longer who are not of the room since its state has changed."""
        view = self._dag.view()
        for peer, caller in list(self.here.items()):
            if not view.is_relay(peer) and why_not_member(view, caller) is not None:
                del self.here[peer]

    def note_seen(self, caller: Caller, now: float) -> None:
        """Note when a member asked for something."""
        if why_not_member(self._dag.view(), caller) is None:
            self.seen[caller.person] = now

    def handle_link_down(self, peer: PeerId) -> None:
        """Count a peer as here no longer."""
        self.here.pop(peer, None)
        self._waiting.pop(peer, None)

    def why_not_visitor(self, caller: Caller | None, ticket: Ticket | None, now: float) -> Reason | None:
        """Why the control DAG is not shown to somebody."""
        view, check = self._dag.view(), self._context.card_check
        return why_not_visitor(self._room, view, caller, ticket, check, now)

    def own_greeting(self, answer: bool) -> Greet:
        """Our own greeting; `answer`: it answers another."""
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
