"""The delivery ledger: nothing is guessed, delivered wins over all, and a restart changes nothing."""

from __future__ import annotations

import hashlib
import os
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.driven import Driven

from linnet.core.effects import SetTimer
from linnet.core.ids import AuthorId, DeviceId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.items import Overdue
from linnet.delivery.receipts import Fate
from linnet.event.event import Event
from linnet.event.signing import message_tail
from linnet.rooms.commands import MemberFate
from linnet.rooms.delivery_ledger import MARKS, RELAYS, DeadlineDue, EventRow, Ledger, PersonRow, RelayWord
from linnet.rooms.event_types import member_key
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

ROOM = TopicId(b"r" * 32)
ANN, BEN, CID, DEE = (AuthorId(name * 32) for name in (b"a", b"b", b"c", b"d"))
US = DeviceId(b"laptop..")
R1, R2 = PeerId(b"1" * 32), PeerId(b"2" * 32)


def event(seq: int) -> Event:
    own = EventId(hashlib.sha256(b"%d" % seq).digest())
    return Event(own, ROOM, ANN, US, seq, None, message_tail(b"", 1000 + seq))


def ids(*seqs: int) -> list[EventId]:
    return [event(seq).id for seq in seqs]


class Account:
    """A ledger that can be closed and opened again, with events that were sent to Ben and Cid."""

    def __init__(self, events: int = 0, limit: int = 100) -> None:
        self.store = MemoryStore()
        self.limit = limit
        self.restart()
        for seq in range(events):
            assert self.ledger.open_account(event(seq), (BEN, CID), 100.0) == []

    def restart(self) -> None:
        self.ledger = Driven(lambda out: Ledger(ROOM, self.store.cells, out, self.limit))

    def pass_deadline(self, timer: DeadlineDue) -> tuple[Overdue, *tuple[Any, ...]] | None:
        """What is told when a deadline has passed, and what is recorded."""
        late = self.ledger.handle_deadline(timer.seq)
        return None if late is None else (late, *self.ledger.out.take())

    def of(self, seq: int, person: AuthorId) -> MemberFate:
        fates = self.ledger.fates(event(seq).id)
        assert fates is not None
        found: MemberFate = next(fate for fate in fates.members if fate.person == person)
        return found

    def fates(self, seq: int) -> list[Fate]:
        fates = self.ledger.fates(event(seq).id)
        assert fates is not None
        return [fate.fate for fate in fates.members]


def test_what_was_sent_is_pending_at_everybody_it_was_meant_for() -> None:
    account = Account(1)
    fates = account.ledger.fates(event(0).id)
    assert fates is not None
    assert (fates.event, fates.kind, fates.time) == (event(0).id, "message", 1000)
    assert fates.members == tuple(MemberFate(who, Fate.PENDING, None, (), None) for who in (BEN, CID))
    assert account.ledger.fates(event(1).id) is None


def test_one_acknowledgement_covers_all_before_it() -> None:
    account = Account(3)
    acked = Record(Kind.ACKED, ROOM, device=US, seq=1, note=member_key(BEN))
    assert account.ledger.note_ack(BEN, 1, 110.0) == [acked]
    assert account.of(0, BEN) == MemberFate(BEN, Fate.DELIVERED, 110.0, (), None)
    assert [account.fates(seq)[0] for seq in range(3)] == [Fate.DELIVERED, Fate.DELIVERED, Fate.PENDING]
    assert account.ledger.note_ack(BEN, 0, 120.0) == []
    assert account.of(0, BEN).at == 110.0


def test_an_acknowledgement_of_what_was_never_sent_covers_nothing_that_comes_later() -> None:
    account = Account(2)
    account.ledger.note_ack(BEN, 99, 110.0)
    account.ledger.open_account(event(2), (BEN, CID), 120.0)
    assert [account.fates(seq)[0] for seq in range(3)] == [Fate.DELIVERED, Fate.DELIVERED, Fate.PENDING]


def test_an_account_that_is_open_is_not_opened_again() -> None:
    account = Account(2)
    account.ledger.note_ack(BEN, 1, 110.0)
    assert account.ledger.open_account(event(1), (DEE,), 120.0) == []
    for _ in range(2):
        assert account.fates(1) == [Fate.DELIVERED, Fate.PENDING]
        account.restart()


def test_whoever_comes_later_is_not_shown_for_what_was_said_before() -> None:
    account = Account(1)
    account.ledger.open_account(event(1), (CID, DEE), 110.0)
    account.ledger.open_account(event(2), (BEN, CID), 120.0)
    for _ in range(2):
        people = [
            [fate.person for fate in fates.members]
            for seq in range(3)
            if (fates := account.ledger.fates(event(seq).id))
        ]
        assert people == [[BEN, CID], [CID, DEE], [BEN, CID]]
        account.restart()


def test_a_relay_that_keeps_it_is_named_with_when_it_said_so() -> None:
    account = Account(1)
    account.ledger.note_kept(ids(0, 7), R1, 110.0)
    account.ledger.note_kept(ids(0), R2, 120.0)
    account.ledger.note_kept(ids(0), R1, 130.0)
    assert account.of(0, BEN) == MemberFate(BEN, Fate.AT_RELAY, 110.0, (R1, R2), None)
    account.ledger.note_ack(BEN, 0, 140.0)
    assert account.fates(0) == [Fate.DELIVERED, Fate.AT_RELAY]


def test_it_has_expired_when_every_relay_has_let_it_go() -> None:
    account = Account(1)
    account.ledger.note_kept(ids(0), R1, 110.0)
    account.ledger.note_kept(ids(0), R2, 111.0)
    gone = Record(Kind.EXPIRED, ROOM, event=event(0).id, device=US, seq=0, peer=R1, reason=Reason.RETENTION)
    assert account.ledger.note_expiry(ids(0), R1, Reason.RETENTION, 120.0) == [gone]
    assert account.ledger.note_expiry(ids(0), R1, Reason.RETENTION, 121.0) == []
    assert account.of(0, BEN) == MemberFate(BEN, Fate.AT_RELAY, 111.0, (R2,), None)
    account.ledger.note_expiry(ids(0), R2, Reason.QUOTA, 130.0)
    assert account.of(0, BEN) == MemberFate(BEN, Fate.EXPIRED, 130.0, (R1, R2), Reason.QUOTA)
    assert account.ledger.unsent() == ()


def test_a_refusing_member_shows_for_itself_alone() -> None:
    account = Account(1)
    refused = account.ledger.note_refusal(event(0).id, BEN, Reason.SOFT_FAILED, 110.0)
    note = "refused by a member"
    assert refused == [
        Record(
            Kind.REJECTED,
            ROOM,
            event=event(0).id,
            device=US,
            seq=0,
            reason=Reason.SOFT_FAILED,
            note=note,
        )
    ]
    assert account.ledger.note_refusal(event(0).id, BEN, Reason.BANNED, 111.0) == []
    account.ledger.note_kept(ids(0), R1, 120.0)
    assert account.of(0, BEN) == MemberFate(BEN, Fate.REFUSED, 110.0, (), Reason.SOFT_FAILED)
    assert account.fates(0) == [Fate.REFUSED, Fate.AT_RELAY]
    account.ledger.note_ack(BEN, 0, 130.0)  # It has what follows, and so this too; it does not show it.
    assert account.fates(0) == [Fate.REFUSED, Fate.AT_RELAY]


def test_a_refusing_relay_shows_for_all_while_no_relay_holds_it_and_nobody_has_it() -> None:
    account = Account(1)
    (record,) = account.ledger.note_relay_refusal(event(0).id, R1, Reason.QUOTA, 110.0)
    assert (record.kind, record.peer, record.reason) == (Kind.REJECTED, R1, Reason.QUOTA)
    assert account.of(0, BEN) == MemberFate(BEN, Fate.REFUSED, 110.0, (), Reason.QUOTA)
    assert account.fates(0) == [Fate.REFUSED, Fate.REFUSED]
    account.ledger.note_ack(CID, 0, 115.0)
    assert account.of(0, BEN) == MemberFate(BEN, Fate.PENDING, 110.0, (), Reason.QUOTA), "Cid may bring it"
    assert account.fates(0) == [Fate.PENDING, Fate.DELIVERED]
    account.ledger.note_kept(ids(0), R2, 120.0)
    assert account.fates(0) == [Fate.AT_RELAY, Fate.DELIVERED]
    account.ledger.note_expiry(ids(0), R2, Reason.RETENTION, 130.0)
    assert account.of(0, BEN) == MemberFate(BEN, Fate.EXPIRED, 130.0, (R2,), Reason.RETENTION)


def test_a_relay_cannot_refuse_what_it_holds() -> None:
    account = Account(1)
    account.ledger.note_kept(ids(0), R1, 110.0)
    assert account.ledger.note_relay_refusal(event(0).id, R1, Reason.QUOTA, 120.0) == []
    assert account.fates(0) == [Fate.AT_RELAY, Fate.AT_RELAY]


def test_whoever_gives_no_receipts_is_unknown_until_something_else_tells() -> None:
    account = Account(2)
    account.ledger.note_receipts_off(BEN, True)
    account.ledger.note_kept(ids(0, 1), R1, 110.0)
    assert account.fates(0) == [Fate.UNKNOWN, Fate.AT_RELAY]
    account.ledger.note_ack(BEN, 0, 120.0)
    assert [account.fates(seq)[0] for seq in range(2)] == [Fate.DELIVERED, Fate.UNKNOWN]
    account.ledger.note_receipts_off(BEN, False)
    assert account.fates(1) == [Fate.AT_RELAY, Fate.AT_RELAY]


def test_unsent_is_what_neither_a_relay_nor_a_member_has() -> None:
    account = Account(5)
    assert account.ledger.unsent() == tuple(ids(0, 1, 2, 3, 4))
    account.ledger.note_ack(CID, 1, 110.0)
    account.ledger.note_kept(ids(3), R1, 120.0)
    account.ledger.note_relay_refusal(event(4).id, R1, Reason.QUOTA, 120.0)
    for _ in range(2):
        assert account.ledger.unsent() == tuple(ids(2, 4))
        account.restart()


def test_unkept_is_what_no_relay_has_and_someone_lacks() -> None:
    account = Account(5)
    account.ledger.note_ack(CID, 4, 110.0)
    assert account.ledger.unsent() == ()
    assert account.ledger.unkept() == tuple(ids(0, 1, 2, 3, 4))
    account.ledger.note_ack(BEN, 1, 110.0)
    account.ledger.note_kept(ids(3), R1, 120.0)
    for _ in range(2):
        assert account.ledger.unkept() == tuple(ids(2, 4))
        account.restart()
    account.ledger.note_ack(BEN, 4, 130.0)
    assert account.ledger.unkept() == ()


def test_the_newest_come_first() -> None:
    account = Account(4)
    assert [fates.event for fates in account.ledger.newest(2)] == ids(3, 2)
    assert len(account.ledger.newest(9)) == 4
    assert account.ledger.newest(0) == ()


def test_a_deadline_tells_at_whom_it_has_not_arrived() -> None:
    account = Account(2)
    tick = DeadlineDue(ROOM, 1)
    assert account.ledger.set_deadline(event(1).id, 30.0, 100.0) == [SetTimer(30.0, tick)]
    assert account.ledger.set_deadline(event(9).id, 30.0, 100.0) == []
    account.ledger.note_ack(BEN, 1, 110.0)
    told = account.pass_deadline(tick)
    note = "not known to have arrived at 1"
    record = Record(Kind.EXPIRED, ROOM, event=event(1).id, device=US, seq=1, reason=Reason.OVERDUE, note=note)
    assert told == (Overdue(ROOM, event(1).id, (CID,)), record)
    assert account.pass_deadline(tick) is None


def test_a_deadline_that_everybody_kept_tells_nothing() -> None:
    account = Account(1)
    (timer,) = account.ledger.set_deadline(event(0).id, 30.0, 100.0)
    account.ledger.note_ack(BEN, 0, 110.0)
    account.ledger.note_ack(CID, 0, 110.0)
    assert account.pass_deadline(timer.timer) is None
    assert account.ledger.start(140.0) == []


def test_a_deadline_waits_for_nobody_whom_the_event_removes() -> None:
    account = Account()
    account.ledger.open_account(event(0), (BEN, CID), 100.0, BEN)
    account.ledger.set_deadline(event(0).id, 30.0, 100.0)
    account.restart()
    account.ledger.note_ack(CID, 0, 110.0)
    assert account.pass_deadline(DeadlineDue(ROOM, 0)) is None


def test_a_deadline_outlives_a_restart() -> None:
    account = Account(2)
    (timer,) = account.ledger.set_deadline(event(0).id, 30.0, 100.0)
    account.ledger.set_deadline(event(1).id, 5.0, 100.0)
    account.restart()
    late = SetTimer(0.0, DeadlineDue(ROOM, 1))
    assert account.ledger.start(110.0) == [SetTimer(20.0, timer.timer), late]
    told = account.pass_deadline(timer.timer)
    assert told is not None
    assert told[0].people == (BEN, CID)


def test_a_deadline_that_is_past_from_the_start_is_due_at_once() -> None:
    account = Account(1)
    (timer,) = account.ledger.set_deadline(event(0).id, -3.0, 100.0)
    assert timer.delay == 0.0


def test_the_oldest_are_forgotten_with_a_record() -> None:
    account = Account(32, limit=32)
    account.ledger.set_deadline(event(0).id, 30.0, 100.0)
    (record,) = account.ledger.open_account(event(32), (BEN, CID), 200.0)
    note = "fates of our oldest events, with 1 deadlines"
    assert record == Record(
        Kind.EVICTED,
        ROOM,
        event=event(2).id,
        device=US,
        seq=0,
        events=3,
        reason=Reason.TOO_MANY,
        note=note,
    )
    for _ in range(2):
        assert len(account.ledger._events) == 30
        assert account.ledger.fates(event(2).id) is None
        assert account.fates(3) == [Fate.PENDING, Fate.PENDING]
        assert account.pass_deadline(DeadlineDue(ROOM, 0)) is None
        account.restart()
    assert account.ledger.open_account(event(33), (BEN, CID), 200.0) == []


def test_whoever_left_before_all_that_is_remembered_is_forgotten_too() -> None:
    account = Account(2, limit=4)
    account.ledger.note_ack(BEN, 1, 110.0)
    for seq in range(2, 8):
        account.ledger.open_account(event(seq), (CID,), 120.0)
    keys = [key for key, _ in account.store.cells.scan(f"ledger/{ROOM.hex()}")]
    assert keys == [*(b"e" + seq.to_bytes(8, "big") for seq in range(4, 8)), b"p" + CID]


def test_more_relays_than_are_kept_account_of_are_recorded() -> None:
    account = Account(1)
    relays = [PeerId(bytes([number]) * 32) for number in range(RELAYS + 1)]
    for relay in relays[:RELAYS]:
        assert account.ledger.note_kept(ids(0), relay, 110.0) == []
    (record,) = account.ledger.note_kept(ids(0), relays[RELAYS], 110.0)
    assert (record.kind, record.reason, record.peer) == (Kind.DROPPED, Reason.TOO_MANY, relays[RELAYS])
    assert account.of(0, BEN).relays == tuple(relays[:RELAYS])
    (_, gone) = account.ledger.note_expiry(ids(0), relays[RELAYS], Reason.QUOTA, 120.0)
    assert gone.kind is Kind.EXPIRED


def test_what_is_kept_of_a_person_does_not_grow_with_acknowledgements() -> None:
    account = Account(5 * MARKS, limit=1000)
    for seq in range(5 * MARKS):
        account.ledger.note_ack(BEN, seq, float(seq))
    row = account.store.cells.get(f"ledger/{ROOM.hex()}", b"p" + BEN)
    assert row is not None
    assert len(row) < 20 * MARKS
    assert account.of(0, BEN) == MemberFate(BEN, Fate.DELIVERED, None, (), None)
    assert account.of(5 * MARKS - 1, BEN).at == 5 * MARKS - 1


PEOPLE = (BEN, CID, DEE)
people = st.sampled_from(PEOPLE)
relays = st.sampled_from((R1, R2))
seqs = st.integers(min_value=0, max_value=11)
STEPS = st.one_of(
    st.tuples(st.just("sent"), st.lists(people, unique=True)),
    st.tuples(st.just("acked"), people, seqs),
    st.tuples(st.just("at_relay"), relays, seqs),
    st.tuples(st.just("expired"), relays, seqs),
    st.tuples(st.just("refused"), people, seqs),
    st.tuples(st.just("relay_refused"), relays, seqs),
    st.tuples(st.just("off"), people, st.booleans()),
    st.tuples(st.just("restart")),
)


class Truth:
    """What was said, kept as plainly as can be: a row per event and person."""

    def __init__(self) -> None:
        self.account = Account()
        self.next = 0
        self.acks: dict[tuple[int, AuthorId], float] = {}
        self.meant: dict[int, list[AuthorId]] = {}
        self.holds: dict[tuple[int, PeerId], bool] = {}
        self.refused: dict[tuple[int, AuthorId], Reason] = {}
        self.no: dict[int, None] = {}
        self.off: dict[AuthorId, bool] = {}
        self.now = 0.0

    def step(self, what: str, *given: object) -> None:  # noqa: C901 - one case for each call
        self.now += 1.0
        ledger = self.account.ledger
        match (what, *given):
            case ("sent", list(meant)):
                ledger.open_account(event(self.next), tuple(meant), self.now)
                self.meant[self.next] = meant
                self.next += 1
            case ("acked", bytes(person), int(seq)):
                ledger.note_ack(AuthorId(person), seq, self.now)
                for covered in range(min(seq + 1, self.next)):
                    self.acks.setdefault((covered, AuthorId(person)), self.now)
            case ("at_relay", bytes(relay), int(seq)):
                ledger.note_kept(ids(seq), PeerId(relay), self.now)
                if seq < self.next:
                    self.holds[seq, PeerId(relay)] = True
            case ("expired", bytes(relay), int(seq)):
                ledger.note_expiry(ids(seq), PeerId(relay), Reason.RETENTION, self.now)
                if seq < self.next:
                    self.holds[seq, PeerId(relay)] = False
            case ("refused", bytes(person), int(seq)):
                ledger.note_refusal(event(seq).id, AuthorId(person), Reason.BANNED, self.now)
                if seq < self.next:
                    self.refused[seq, AuthorId(person)] = Reason.BANNED
            case ("relay_refused", bytes(relay), int(seq)):
                ledger.note_relay_refusal(event(seq).id, PeerId(relay), Reason.QUOTA, self.now)
                if seq < self.next:
                    self.no[seq] = None
            case ("off", bytes(person), bool(off)):
                ledger.note_receipts_off(AuthorId(person), off)
                self.off[AuthorId(person)] = off
            case _:
                self.account.restart()

    def fate(self, seq: int, person: AuthorId) -> Fate:
        """As the rules say it; an acknowledgement of someone who never was meant is passed over."""
        if (seq, person) in self.refused:
            return Fate.REFUSED
        if self.off.get(person, False):
            return Fate.UNKNOWN
        held = [holds for (which, _), holds in self.holds.items() if which == seq]
        if any(held):
            return Fate.AT_RELAY
        if held:
            return Fate.EXPIRED
        return Fate.REFUSED if seq in self.no and not self.is_reached(seq) else Fate.PENDING

    def is_reached(self, seq: int) -> bool:
        """Whether somebody who is in the account has it."""
        known = [person for meant in self.meant.values() for person in meant]
        return any(covered >= seq and person in known for covered, person in self.acks)


@settings(max_examples=2000 if os.environ.get("LINNET_SOAK") else 150, deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_nothing_is_guessed_and_delivered_is_for_ever(steps: list[tuple[object, ...]]) -> None:
    truth = Truth()
    delivered: dict[tuple[int, AuthorId], float | None] = {}
    for what, *given_ in steps:
        truth.step(str(what), *given_)
        for seq, meant in truth.meant.items():
            fates = truth.account.ledger.fates(event(seq).id)
            assert fates is not None
            shown = {fate.person: fate for fate in fates.members}
            assert sorted(shown) == sorted(meant)
            for person, fate in shown.items():
                if fate.fate is Fate.DELIVERED:
                    assert truth.acks[seq, person] <= (fate.at or 0.0)
                    assert delivered.setdefault((seq, person), fate.at) == fate.at
                else:
                    assert (seq, person) not in delivered
                    assert fate.fate is truth.fate(seq, person)


@settings(max_examples=1000 if os.environ.get("LINNET_SOAK") else 100, deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_an_acknowledgement_of_someone_who_was_meant_is_never_lost(steps: list[tuple[object, ...]]) -> None:
    truth = Truth()
    due: dict[tuple[int, AuthorId], None] = {}
    for what, *given_ in steps:
        if what == "acked":
            person, upto = given_
            known = any(person in meant for meant in truth.meant.values())
            for seq, meant in truth.meant.items():
                if known and seq <= upto and person in meant:  # type: ignore[operator]
                    due[seq, person] = None  # type: ignore[index]
        truth.step(str(what), *given_)
    assert all(truth.account.of(seq, person).fate is Fate.DELIVERED for seq, person in due)
    unsent = truth.account.ledger.unsent()
    for seq in truth.meant:
        had = any(which == seq for which, _ in truth.holds)
        reached = any(which >= seq for which, _ in due)
        if had or reached:
            assert event(seq).id not in unsent


def test_spans_that_ended_before_are_forgotten() -> None:
    row = PersonRow(0)
    row.enter(0)
    row.leave(4)
    row.enter(6)
    assert not row.forget_before(3)
    assert row.forget_before(4)
    assert row.spans == [(6, None)]


def test_only_the_latest_steps_have_a_time() -> None:
    row = PersonRow(0)
    for seq in range(MARKS):
        row.ack(seq, float(seq))
    assert row.when(0) == 0.0
    row.ack(MARKS, float(MARKS))
    assert (row.when(0), row.when(1), row.when(MARKS)) == (None, 1.0, float(MARKS))
    assert row.acked == MARKS


def test_rows_are_the_same_after_a_restart() -> None:
    event = EventRow(4, EventId(b"e" * 32), DeviceId(b"d" * 8), "message", 7, 8.0)
    event.relays[PeerId(b"r" * 32)] = RelayWord(False, True, 9.0, Reason.RETENTION)
    event.refused[AuthorId(b"p" * 32)] = (10.0, Reason.BANNED)
    event.deadline = 11.5
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(event), type=EventRow) == event
    person = PersonRow(2, 5, [(5, 6.0)], 1, [(0, 3), (4, None)], True)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(person), type=PersonRow) == person
