"""What one input leads to at a relay, gathered until its end."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from linnet.core.effects import AfterCommit, Blame, Send
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.event.event import Event, Unverified
from linnet.rooms.effects import RoomEffect, RoomPromise
from linnet.rooms.messages import RelayCursor, RelayOutcome, RelayTaken
from linnet.rooms.relay.answers import Answers
from linnet.rooms.relay.door import Caller
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
    """Effects, promises and answers of one input."""

    def __init__(self, room: TopicId, answers: Answers) -> None:
        self._room = room
        self._answers = answers
        self.effects: list[RoomEffect] = []
        self.promises: list[RoomPromise] = []
        """Effects that say that something is kept: after the commit."""
        self.replies: list[RelayTaken] = []
        """Answers for who is not linked."""
        self.fresh: list[Fresh] = []
        self.forwards = False
        """Whether something came that the other relays are to have."""
        self.changed = False
        """Whether a control event came, so that the state may be another."""

    def outcome(
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
            self.answer(origin.caller, self._answers.settle(origin, outcome))

    def answer(self, caller: Caller, taken: RelayTaken | None) -> None:
        """An answer is complete: over a link it is sent after the commit, else it is taken from here."""
        if taken is None:
            return
        if caller.linked:
            self.promises.append(Send(caller.peer, taken))
        else:
            self.replies.append(taken)

    def refuse(
        self,
        origins: list[Origin],
        event: Event | None,
        reason: Reason,
        missing: tuple[EventId, ...] = (),
        note: str | None = None,
    ) -> None:
        """An event is not kept."""
        source = origins[0].caller.peer
        record = Record(Kind.REJECTED, self._room, peer=source, reason=reason, note=note)
        if event is not None:
            record = replace(
                record, event=event.id, device=event.device, seq=event.seq, note=note or event.kind
            )
        self.effects.append(record)
        if reason in _FORGERIES:
            self.effects.append(Blame(source, reason))
        self.outcome(origins, NO_EVENT if event is None else event.id, None, reason, missing[:32])

    def all(self) -> list[RoomEffect]:
        """Everything, in the order in which it is to happen."""
        if self.promises:
            self.effects.append(AfterCommit(tuple(self.promises)))
            self.promises = []
        return self.effects
