from __future__ import annotations

from pathlib import Path

from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.sim.rooms.traffic import Entry, merge
from linnet.trace.jsonlines import JsonTrace, read_trace
from linnet.trace.records import Kind, Level, Record, Row, row_of

ALICE, BOB, RELAY, STRANGER = (PeerId(bytes([n]) * 32) for n in range(4))
NAMES = {ALICE: "alice", BOB: "bob", RELAY: "relay0"}
ROOM, OTHER = TopicId(b"r" * 32), TopicId(b"o" * 32)
SETUP, FIRST, SECOND = (EventId(bytes([n]) * 32) for n in (9, 8, 7))

RECORDS: list[tuple[float, PeerId, Record]] = [
    (99.0, ALICE, Record(Kind.PUBLISHED, ROOM, SETUP, note="member")),
    (100.0, BOB, Record(Kind.OFFLINE)),
    (101.0, ALICE, Record(Kind.PUBLISHED, ROOM, FIRST, note="message")),
    (101.0, ALICE, Record(Kind.SENT, ROOM, FIRST, peer=RELAY, note="message")),
    (101.1, RELAY, Record(Kind.RECEIVED, ROOM, FIRST, note="message")),
    (101.2, RELAY, Record(Kind.STORED, ROOM, FIRST, note="message")),
    (101.3, ALICE, Record(Kind.STORED, ROOM, FIRST, note="message")),
    (102.0, BOB, Record(Kind.ONLINE)),
    (102.1, BOB, Record(Kind.RESYNC, ROOM, peer=RELAY, note="resync")),
    (102.2, RELAY, Record(Kind.RESYNC, ROOM, peer=BOB, note="receive-resync")),
    (102.2, RELAY, Record(Kind.RESYNC, ROOM, peer=BOB, note="reply-resync")),
    (102.3, BOB, Record(Kind.RESYNC, ROOM, peer=RELAY, note="resync-response")),
    (102.3, BOB, Record(Kind.RECEIVED, ROOM, FIRST, note="message")),
    (102.4, STRANGER, Record(Kind.RECEIVED, ROOM, FIRST, note="message")),
    (102.5, BOB, Record(Kind.PUBLISHED, OTHER, SETUP, note="message")),
    (103.0, BOB, Record(Kind.PUBLISHED, ROOM, SECOND, note="power")),
    (103.1, RELAY, Record(Kind.RESYNC, ROOM, peer=BOB, reason=Reason.BANNED, note="reject-resync")),
    (103.15, RELAY, Record(Kind.REJECTED, ROOM, peer=BOB, reason=Reason.BANNED, note="greet")),
    (103.15, ALICE, Record(Kind.REJECTED, ROOM, peer=BOB, reason=Reason.BANNED, note="greet")),
    (103.2, BOB, Record(Kind.RESYNC, ROOM, note="something of streams")),
]


def rows() -> list[Row]:
    counters: dict[PeerId, int] = {}
    found = []
    for time, node, record in RECORDS:
        counters[node] = counters.get(node, -1) + 1
        found.append(row_of(record, time, node, counters[node]))
    return found


EXPECTED = [
    (0.0, "bob", "offline", None, None),
    (1.0, "alice", "send", "m.room.message", 1),
    (1.1, "relay0", "receive", "m.room.message", 1),
    (1.2, "relay0", "cache-event", "m.room.message", 1),
    (2.0, "bob", "online", None, None),
    (2.1, "bob", "resync", None, None),
    (2.2, "relay0", "receive-resync", None, None),
    (2.2, "relay0", "reply-resync", None, None),
    (2.3, "bob", "resync-response", None, None),
    (2.3, "bob", "receive", "m.room.message", 1),
    (3.0, "bob", "send", "m.room.power_levels", 2),
    (3.1, "relay0", "reject-resync", None, None),
    (3.15, "relay0", "turn-away", None, None),
]


def plain(entries: tuple[Entry, ...]) -> list[tuple[object, ...]]:
    return [(round(e.time, 6), e.user, e.action, e.type, e.event) for e in entries]


def test_rows_in_any_order_become_the_published_columns() -> None:
    log = merge(reversed(rows()), NAMES, [RELAY], topic=ROOM, begin=100.0)
    assert plain(log.entries) == EXPECTED
    assert log.ids == (FIRST, SECOND)
    assert (log.number(SECOND), log.number(SETUP)) == (2, None)


def test_without_a_beginning_the_first_line_is_it() -> None:
    log = merge(rows(), NAMES, [RELAY])
    assert (log.begin, log.entries[0].time, log.entries[0].event) == (99.0, 0.0, 1)
    assert log.ids == (SETUP, FIRST, SECOND)


def test_trace_files_of_live_nodes_give_the_same_log(tmp_path: Path) -> None:
    for number, peer in enumerate((ALICE, BOB, RELAY, STRANGER)):
        with JsonTrace(tmp_path / str(number), Level.FULL, 1_000_000, 3) as trace:
            for time, node, record in RECORDS:
                if node == peer:
                    trace.write(node, record, time)
    read = [row for number in range(4) for row in read_trace(tmp_path / str(number))]
    assert plain(merge(read, NAMES, [RELAY], topic=ROOM, begin=100.0).entries) == EXPECTED


def test_a_log_is_searched_and_written() -> None:
    log = merge(rows(), NAMES, [RELAY], topic=ROOM, begin=100.0)
    assert [entry.user for entry in log.find("receive", event=1)] == ["relay0", "bob"]
    assert len(log.find(user="bob")) == 6
    lines = log.to_csv().splitlines()
    assert lines[:3] == [
        "Time [s],User,Action,Type,Event ID",
        "0.0000,bob,offline,,",
        "1.0000,alice,send,m.room.message,1",
    ]
    assert log.to_builtins()[1] == {
        "time": 1.0,
        "user": "alice",
        "action": "send",
        "type": "m.room.message",
        "event": 1,
        "id": FIRST.hex(),
    }
    assert len(log.to_builtins()) == len(lines) - 1


def test_nothing_recorded_is_an_empty_log() -> None:
    assert merge([], NAMES).entries == ()
