"""Rows of the ledger: spans of being meant, steps of acknowledgement and their times."""

from __future__ import annotations

import msgspec

from linnet.core.ids import AuthorId, DeviceId, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.rooms.delivery_ledger import MARKS, EventRow, PersonRow, RelayWord


def test_a_person_is_meant_from_their_coming_until_before_their_going() -> None:
    row = PersonRow(0)
    assert not row.is_meant
    row.enter(3)
    assert row.is_meant
    row.leave(6)
    row.enter(9)
    assert [seq for seq in range(12) if row.meant(seq)] == [3, 4, 5, 9, 10, 11]


def test_spans_that_ended_before_are_forgotten() -> None:
    row = PersonRow(0)
    row.enter(0)
    row.leave(4)
    row.enter(6)
    assert not row.forget_before(3)
    assert row.forget_before(4)
    assert row.spans == [(6, None)]


def test_each_event_has_the_time_of_the_step_that_covered_it() -> None:
    row = PersonRow(0)
    row.ack(2, 10.0)
    row.ack(5, 20.0)
    assert [row.when(seq) for seq in range(7)] == [10.0, 10.0, 10.0, 20.0, 20.0, 20.0, None]


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
