"""What one input leads to at a relay: what it promises is gathered until its end."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from linnet.core.effects import AfterCommit, Send
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.event.event import Event, Unverified
from linnet.machine.outbox import Outbox, Promise
from linnet.rooms.messages import RelayCursor, RelayOutcome, RelayTaken
from linnet.rooms.relay.access_control import Caller
from linnet.rooms.relay.answers import Answers
from linnet.rooms.relay.parking import Origin
from linnet.trace.records import Kind, Record

NO_EVENT = EventId(bytes(32))
"""In the place of an id, for what is no event."""
_FORGERIES = frozenset({Reason.BAD_SIGNATURE, Reason.MALFORMED})


class Fresh(NamedTuple):
    """An event that was just stored."""

    position: int
    event: EventId
    unit: Unverified
    source: PeerId
    """Who brought it, and need not be told."""


class Turn:
    """The promises and answers of one input. All promises wait for one commit, after all other effects."""

    def __init__(self, room: TopicId, answers: Answers, out: Outbox) -> None:
        self._room = room
        self._answers = answers
        self._out = out
        self._promises: list[Promise] = []
        """Effects that say that something is kept: after the commit."""
        self.replies: list[RelayTaken] = []
        """Answers for who is not linked."""
        self.fresh: list[Fresh] = []
        self.forwards = False
        """Whether something came that the other relays are to have."""
        self.changed = False
        """Whether a control event came, so that the state may be another."""

    def promise_send(self, peer: PeerId, message: Message) -> None:
        """Send a message after the commit."""
        self._promises.append(Send(peer, message))

    def promise_record(self, record: Record) -> None:
        """Write a record to the trace after the commit."""
        self._promises.append(record)

    def tell_outcome(
        self,
        origins: list[Origin],
        event: EventId,
        cursor: RelayCursor | None,
        reason: Reason | None,
        missing: tuple[EventId, ...] = (),
    ) -> None:
        """Say what became of an event to whoever waits for an answer about it."""
        outcome = RelayOutcome(event, cursor, reason, missing)
        for origin in origins:
            self.give_answer(origin.caller, self._answers.settle(origin, outcome))

    def give_answer(self, caller: Caller, taken: RelayTaken | None) -> None:
        """Give an answer if it is complete: over a link it is sent after the commit, else it is a reply."""
        if taken is None:
            return
        if caller.linked:
            self.promise_send(caller.peer, taken)
        else:
            self.replies.append(taken)

    def refuse_event(
        self,
        origins: list[Origin],
        event: Event | None,
        reason: Reason,
        missing: tuple[EventId, ...] = (),
        note: str | None = None,
    ) -> None:
        """Record that an event is not kept, blame whoever forged it, and tell why."""
        source = origins[0].caller.peer
        record = Record(Kind.REJECTED, self._room, peer=source, reason=reason, note=note)
        if event is not None:
            record = replace(
                record, event=event.id, device=event.device, seq=event.seq, note=note or event.kind
            )
        self._out.record(record)
        if reason in _FORGERIES:
            self._out.blame(source, reason)
        self.tell_outcome(origins, NO_EVENT if event is None else event.id, None, reason, missing[:32])

    def finish(self) -> None:
        """Ask for everything that was promised."""
        if self._promises:
            self._out.add(AfterCommit(tuple(self._promises)))
            self._promises = []
