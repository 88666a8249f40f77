"""The delivery ledger: the fate of each of our own events at each member it was meant for.

Our own chain is totally ordered, and a member that has one of its events has all before it. So one number per
person says how much arrived there; a row per event keeps the answers of relays, and rare facts (a refusal, a
deadline). Nothing is guessed: an event counts as delivered only if an acknowledgement covers it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from linnet.core.ids import AuthorId, DeviceId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.delivery.items import Overdue
from linnet.delivery.receipts import Fate
from linnet.event.event import Event
from linnet.machine.outbox import Outbox
from linnet.rooms.commands import EventFates, MemberFate
from linnet.rooms.event_types import GROUP, member_key
from linnet.rooms.messages import RoomTimer
from linnet.trace.records import Kind, Record

RELAYS = 16
"""The most relays whose answers on one event are kept: twice as many as are ever used at the same time."""

MARKS = 32
"""The most acknowledgements of one person whose time is kept; for earlier events it is unknown."""


class RelayWord(NamedTuple):
    """A relay's last answer on an event."""

    holds: bool
    held: bool
    """Whether the relay holds the event, or once did."""
    at: float
    reason: Reason | None


class EventRow(Struct, array_like=True):
    """The ledger's row of one of our events."""

    seq: int
    id: EventId
    device: DeviceId
    kind: str
    time: int
    at: float
    """The time at which its account was opened."""
    relays: dict[PeerId, RelayWord] = field(default_factory=dict)
    refused: dict[AuthorId, tuple[float, Reason]] = field(default_factory=dict)
    """The members that refused it, with the time and the reason."""
    deadline: float | None = None
    out: AuthorId | None = None
    """The person that it removes from the room, who can no longer acknowledge it."""


class PersonRow(Struct, array_like=True):
    """The ledger's row of a person that events of ours are or were meant for."""

    number: int
    """The position of the person in the order of display."""
    acked: int = -1
    """The number of the last event of ours that they are known to have, and so all before it."""
    marks: list[tuple[int, float]] = field(default_factory=list)
    """The latest values of `acked`, with the times at which we learned them."""
    cut: int = -1
    """The last event for which the time of acknowledgement is no longer kept."""
    spans: list[tuple[int, int | None]] = field(default_factory=list)
    """Ranges of our events that were meant for this person: the first, and the one after the last."""
    off: bool = False
    """Whether the person has declared that they give no receipts."""

    @property
    def is_meant(self) -> bool:
        """Whether our next event is meant for them, to judge by the last one."""
        return bool(self.spans) and self.spans[-1][1] is None

    def meant(self, seq: int) -> bool:
        """Return whether this event of ours is meant for them."""
        return any(first <= seq and (end is None or seq < end) for first, end in reversed(self.spans))

    def enter(self, seq: int) -> None:
        """Note that our events are meant for them from this one on."""
        self.spans.append((seq, None))

    def leave(self, seq: int) -> None:
        """Note that our events are not meant for them from this one on."""
        first, _ = self.spans.pop()
        self.spans.append((first, seq))

    def forget_before(self, seq: int) -> bool:
        """Forget the ranges of events before this one; return whether that changes the row."""
        spans = [(first, end) for first, end in self.spans if end is None or end > seq]
        changed = len(spans) != len(self.spans)
        self.spans = spans
        return changed

    def ack(self, seq: int, now: float) -> None:
        """Note that they are known to have everything up to this event."""
        self.acked = seq
        self.marks.append((seq, now))
        if len(self.marks) > MARKS:
            self.cut = self.marks.pop(0)[0]

    def when(self, seq: int) -> float | None:
        """Return the time at which we learned that they have this event; None if it is no longer kept."""
        if seq <= self.cut:
            return None
        return next((at for upto, at in self.marks if upto >= seq), None)


EVENTS = 10_000
"""The most of our events in one room that have an account: a busy year of one person, a few megabytes."""

_EVENT, _PERSON = b"e", b"p"
_encode = msgspec.msgpack.Encoder().encode
_decode_event = msgspec.msgpack.Decoder(EventRow).decode
_decode_person = msgspec.msgpack.Decoder(PersonRow).decode


class DeadlineDue(RoomTimer, frozen=True, gc=False):
    """Timer: the deadline by which an event of ours should have arrived everywhere."""

    seq: int


class Ledger:
    """The fates of our own events in one room. Every call writes its changes into the cells."""

    def __init__(self, room: TopicId, cells: Cells, out: Outbox, limit: int = EVENTS) -> None:
        self._room = room
        self._cells = cells
        self._out = out
        self._limit = limit
        self._space = f"ledger/{room.hex()}"
        self._events: dict[int, EventRow] = {}
        """The rows by sequence number, in ascending order."""
        self._seqs: dict[EventId, int] = {}
        self._people: dict[AuthorId, PersonRow] = {}
        self._audience: tuple[AuthorId, ...] = ()
        self._reached = -1
        """The number of the last of our events that any member is known to have."""
        for key, value in cells.scan(self._space):
            if key[:1] == _EVENT:
                row = _decode_event(value)
                self._events[row.seq] = row
                self._seqs[row.id] = row.seq
            else:
                self._people[AuthorId(key[1:])] = _decode_person(value)
        self._people = dict(sorted(self._people.items(), key=lambda item: item[1].number))
        self._audience = tuple(person for person, row in self._people.items() if row.is_meant)
        self._reached = max((row.acked for row in self._people.values()), default=-1)

    @property
    def _last(self) -> int:
        """The number of our newest event."""
        return next(reversed(self._events), -1)

    def open_account(
        self, event: Event, people: Sequence[AuthorId], now: float, out: AuthorId | None = None
    ) -> None:
        """Open the account of an event of our own that is in the log, and note the people it is meant for.

        `people` are those joined at its control heads, without ourselves and without relays; `out` is the
        person that it removes from the room. An account that is open already stays as it is.
        """
        if event.seq is None:
            raise ValueError("an event of a room has a sequence number")
        if event.seq <= self._last:
            return
        self._meant(tuple(people), event.seq)
        row = EventRow(event.seq, event.id, event.device, event.kind, event.time, now, out=out)
        self._seqs[event.id] = event.seq
        self._events[event.seq] = row
        self._write(row)
        if len(self._events) > self._limit:
            self._forget_oldest()

    def note_ack(self, person: AuthorId, seq: int, now: float) -> None:
        """Note that a person is known to have all our events up to this number.

        A person for whom no event was ever meant has no row.
        """
        row = self._people.get(person)
        seq = min(seq, self._last)
        self._reached = max(self._reached, seq)
        if row is None or seq <= row.acked:
            return
        row.ack(seq, now)
        self._write_person(person, row)
        event = self._events.get(seq)
        device = None if event is None else event.device
        self._out.record(Record(Kind.ACKED, self._room, device=device, seq=seq, note=member_key(person)))

    def note_kept(self, ids: Iterable[EventId], relay: PeerId, now: float) -> None:
        """Note that a relay says it keeps these events. Ids without an account are skipped."""
        for row in self._rows(ids):
            word = row.relays.get(relay)
            if word is None or not word.holds:
                self._keep_word(row, relay, RelayWord(True, True, now, None))

    def note_expiry(self, ids: Iterable[EventId], relay: PeerId, reason: Reason, now: float) -> None:
        """Note that a relay says it kept these events and keeps them no longer."""
        for row in self._rows(ids):
            word = row.relays.get(relay)
            if word is None or word.holds or not word.held:
                self._keep_word(row, relay, RelayWord(False, True, now, reason))
                self._out.record(self._record(Kind.EXPIRED, row, reason, relay, None))

    def note_loss(self, relay: PeerId, now: float) -> None:
        """Note that a relay has lost its store: all events that it held count as expired there."""
        held = [row.id for row in self._events.values() if (word := row.relays.get(relay)) and word.holds]
        self.note_expiry(held, relay, Reason.LOST, now)

    def note_relay_refusal(self, event: EventId, relay: PeerId, reason: Reason, now: float) -> None:
        """Note that a relay refused an event; ignored if the relay holds or held the event."""
        for row in self._rows((event,)):
            word = row.relays.get(relay)
            if word is None or not word.held:
                self._keep_word(row, relay, RelayWord(False, False, now, reason))
                self._out.record(self._record(Kind.REJECTED, row, reason, relay, "refused by a relay"))

    def withdraw_refusals(self, is_allowed: Callable[[EventId], bool]) -> None:
        """Forget what members refused if it is allowed now: who refused it for what is silenced shows it."""
        for row in self._events.values():
            if row.refused and is_allowed(row.id):
                row.refused.clear()
                self._write(row)

    def note_refusal(self, event: EventId, person: AuthorId, reason: Reason, now: float) -> None:
        """Note that a member refuses an event that was meant for it."""
        seq = self._seqs.get(event)
        member = self._people.get(person)
        if seq is None or member is None or not member.meant(seq):
            return
        row = self._events[seq]
        if person in row.refused:
            return
        row.refused[person] = (now, reason)
        self._write(row)
        self._out.record(self._record(Kind.REJECTED, row, reason, None, "refused by a member"))

    def note_receipts_off(self, person: AuthorId, off: bool) -> None:
        """Note whether a member declares that it gives no receipts. The caller names members only."""
        row = self._people.get(person)
        if row is None:
            if not off:
                return
            row = self._people[person] = self._new_person()
        if row.off != off:
            row.off = off
            self._write_person(person, row)

    def fates(self, event: EventId) -> EventFates | None:
        """Return the fates of one of our events; None if it has no account (any more)."""
        seq = self._seqs.get(event)
        return None if seq is None else self._fates(self._events[seq])

    def newest(self, limit: int) -> tuple[EventFates, ...]:
        """Return the fates of our newest events, the newest first, without operations on keys."""
        told = (row for row in reversed(self._events.values()) if row.kind != GROUP)
        return tuple(map(self._fates, islice(told, limit)))

    def unsent(self) -> tuple[EventId, ...]:
        """Return our events that no relay has or had and no member is known to have, oldest first."""
        return self._unseen(self._reached)

    def unkept(self) -> tuple[EventId, ...]:
        """Return our events that no relay has or had and some member may lack, oldest first.

        A member that only a relay can reach gets them only if a relay does.
        """
        meant = (row.acked for row in self._people.values() if row.is_meant)
        return self._unseen(min(meant, default=self._reached))

    def _unseen(self, reached: int) -> tuple[EventId, ...]:
        unseen: list[EventId] = []
        for seq, row in reversed(self._events.items()):
            if seq <= reached:
                break
            if not any(word.held for word in row.relays.values()):
                unseen.append(row.id)
        return tuple(reversed(unseen))

    # Deadlines.

    def set_deadline(self, event: EventId, seconds: float, now: float) -> None:
        """Set a timer, in seconds, to report the members at whom an event of ours has not arrived."""
        for row in self._rows((event,)):
            row.deadline = now + seconds
            self._write(row)
            self._out.set_timer(max(0.0, seconds), DeadlineDue(self._room, row.seq))

    def start(self, now: float) -> None:
        """Set the timers of all deadlines as the node starts: they go on running while it is down."""
        for row in self._events.values():
            if row.deadline is not None:
                self._out.set_timer(max(0.0, row.deadline - now), DeadlineDue(self._room, row.seq))

    def handle_deadline(self, seq: int) -> Overdue | None:
        """Return the people whom an event has not reached by its deadline.

        None if everybody has the event, or if its account is gone.
        """
        row = self._events.get(seq)
        if row is None or row.deadline is None:
            return None
        row.deadline = None
        self._write(row)
        late = tuple(
            person
            for person, member in self._people.items()
            if member.meant(row.seq) and member.acked < row.seq and person != row.out
        )
        if not late:
            return None
        note = f"not known to have arrived at {len(late)}"
        self._out.record(self._record(Kind.EXPIRED, row, Reason.OVERDUE, None, note))
        return Overdue(self._room, row.id, late)

    # Rows.

    def _meant(self, people: tuple[AuthorId, ...], seq: int) -> None:
        """Set the people that our events are meant for from this one on."""
        if people == self._audience:
            return
        before = dict.fromkeys(self._audience)
        after = dict.fromkeys(people)
        for person in before:
            if person not in after:
                row = self._people[person]
                row.leave(seq)
                self._write_person(person, row)
        for person in after:
            if person not in before:
                row = self._people[person] = self._people.get(person) or self._new_person()
                row.enter(seq)
                self._write_person(person, row)
        self._audience = people

    def _keep_word(self, row: EventRow, relay: PeerId, word: RelayWord) -> None:
        """Keep a relay's answer on an event, if there is room for another relay."""
        if relay not in row.relays and len(row.relays) >= RELAYS:
            note = "a relay's word on it is not kept"
            self._out.record(self._record(Kind.DROPPED, row, Reason.TOO_MANY, relay, note))
            return
        row.relays[relay] = word
        self._write(row)

    def _fates(self, row: EventRow) -> EventFates:
        members = (
            self._fate(row, person, member)
            for person, member in self._people.items()
            if member.meant(row.seq)
        )
        return EventFates(row.id, row.kind, row.time, tuple(members))

    def _fate(self, row: EventRow, person: AuthorId, member: PersonRow) -> MemberFate:
        if person in row.refused:
            # A member that has later events has this one too, and does not show it.
            at, reason = row.refused[person]
            return MemberFate(person, Fate.REFUSED, at, (), reason)
        if member.acked >= row.seq:
            return MemberFate(person, Fate.DELIVERED, member.when(row.seq), (), None)
        if member.off or person == row.out:
            return MemberFate(person, Fate.UNKNOWN, None, (), None)
        holding = {relay: word.at for relay, word in row.relays.items() if word.holds}
        if holding:
            return MemberFate(person, Fate.AT_RELAY, min(holding.values()), tuple(holding), None)
        gone = {relay: word for relay, word in row.relays.items() if word.held}
        if gone:
            last = max(gone.values(), key=lambda word: word.at)
            return MemberFate(person, Fate.EXPIRED, last.at, tuple(gone), last.reason)
        if row.relays:
            last = max(row.relays.values(), key=lambda word: word.at)
            # If any member has the event, it may still reach this person, although the relays refused it.
            fate = Fate.REFUSED if row.seq > self._reached else Fate.PENDING
            return MemberFate(person, fate, last.at, (), last.reason)
        return MemberFate(person, Fate.PENDING, None, (), None)

    def _forget_oldest(self) -> None:
        """Forget the oldest sixteenth at once, so that not every new event records an eviction."""
        many = len(self._events) - self._limit + self._limit // 16
        gone = [row for row, _ in zip(self._events.values(), range(many), strict=False)]
        for row in gone:
            del self._events[row.seq], self._seqs[row.id]
            self._cells.delete(self._space, _EVENT + row.seq.to_bytes(8, "big"))
        first = next(iter(self._events))
        for person, member in list(self._people.items()):
            if member.forget_before(first):
                self._write_person(person, member)
            if not member.spans and not member.off and member.acked < first:
                del self._people[person]
                self._cells.delete(self._space, _PERSON + person)
        deadlines = sum(row.deadline is not None for row in gone)
        note = f"fates of our oldest events, with {deadlines} deadlines"
        record = self._record(Kind.EVICTED, gone[-1], Reason.TOO_MANY, None, note)
        self._out.record(replace(record, seq=gone[0].seq, events=len(gone)))

    def _rows(self, ids: Iterable[EventId]) -> list[EventRow]:
        return [self._events[self._seqs[event]] for event in ids if event in self._seqs]

    def _new_person(self) -> PersonRow:
        last = next(reversed(self._people.values()), None)
        return PersonRow(0 if last is None else last.number + 1)

    def _write(self, row: EventRow) -> None:
        self._cells.put(self._space, _EVENT + row.seq.to_bytes(8, "big"), _encode(row))

    def _write_person(self, person: AuthorId, row: PersonRow) -> None:
        self._cells.put(self._space, _PERSON + person, _encode(row))

    def _record(
        self, kind: Kind, row: EventRow, reason: Reason, peer: PeerId | None, note: str | None
    ) -> Record:
        return Record(
            kind,
            self._room,
            event=row.id,
            device=row.device,
            seq=row.seq,
            peer=peer,
            reason=reason,
            note=note,
        )
