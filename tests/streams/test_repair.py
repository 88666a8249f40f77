"""A log that is damaged: reads leave it out and say so, and it is fetched again from others."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.delivery.voices import asked
from tests.streams.village import STREAM, Village

from linnet.core.effects import AfterCommit
from linnet.core.errors import StoreError
from linnet.core.inputs import Asked
from linnet.core.reasons import Reason
from linnet.core.stores import Cells, EventLog
from linnet.delivery.messages import Resent
from linnet.event.signing import decode_unit, is_sound
from linnet.peer.interface import Start
from linnet.store.sqlite import SqliteStore
from linnet.streams.stream_names import topic_of
from linnet.trace.records import Kind, Record

SAID = [f"event {n:02}".encode() for n in range(12)]


class OnDisk:
    """A store in a file, which can be closed, altered and opened again under the same machine's feet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._store = SqliteStore(path, is_sound)

    @property
    def log(self) -> EventLog:
        return self._store.log

    @property
    def cells(self) -> Cells:
        return self._store.cells

    @property
    def free_bytes(self) -> int | None:
        return None

    @property
    def failed(self) -> StoreError | None:
        return None

    def commit(self, done: Callable[[], None]) -> None:
        self._store.commit(lambda: None)
        self._store._writer.drain()
        done()

    def rollback(self) -> None:
        self._store.rollback()

    def close(self) -> None:
        self._store.close()

    def alter(self, *bodies: bytes) -> None:
        """Change one byte of each of these bodies on the disk."""
        self._store.close()
        with closing(sqlite3.connect(self._path)) as db:
            for body in bodies:
                wrong = body[:-1] + b"!"
                done = db.execute(
                    "UPDATE unit SET raw = CAST(replace(raw, ?, ?) AS BLOB) WHERE instr(raw, ?) > 0",
                    (body, wrong, body),
                )
                assert done.rowcount == 1
            db.commit()
        self._store = SqliteStore(self._path, is_sound)


@pytest.fixture
def village(tmp_path: Path) -> Iterator[Village]:
    """Two storage nodes, of which the first has its log on a disk."""
    made = OnDisk(tmp_path / "s0.db")
    yield (village := Village(1, storage=2, peers=3, stores={"s0": made}))
    village.stores["s0"].close()


def damaged(village: Village, name: str) -> list[Record]:
    return [
        r for node, r in village.notes.records if node == village.peer(name) and r.reason is Reason.DAMAGED
    ]


def spoil(village: Village, *bodies: bytes) -> None:
    village.crash("s0")
    disk = village.stores["s0"]
    assert isinstance(disk, OnDisk)
    disk.alter(*bodies)
    village.restart("s0")
    village.run(10.0)


@pytest.mark.parametrize("bad", [(0,), (5,), (11,), (0, 1, 2, 7, 11)])
def test_what_is_damaged_is_told_and_fetched_again(village: Village, bad: tuple[int, ...]) -> None:
    village.run(5.0)
    for body in SAID:
        village.publish("p0", body, wait=1.0)
    village.run(5.0)
    spoil(village, *(SAID[n] for n in bad))
    # Whoever reads there is told; nothing else is missing, and nothing invented.
    own = village.subscribe("s0", since=0.0, wait=20.0)
    got = village.bodies("s0", own)
    assert got == [body for n, body in enumerate(SAID) if n not in bad]
    told = {
        n for m in village.missed("s0", own) if m.reason is Reason.DAMAGED for n in range(m.first, m.last + 1)
    }
    assert told == set(bad), village.missed("s0", own)
    assert {r.kind for r in damaged(village, "s0")} == {Kind.DROPPED, Kind.RESYNC}
    # It came back from the other one, into its place.
    village.run(60.0)
    again = village.subscribe("s0", since=0.0, wait=20.0)
    assert village.bodies("s0", again) == SAID
    assert village.missed("s0", again) == []
    log = village.stores["s0"].log
    assert len(log.read(topic_of(STREAM), 0, 100)) == len(SAID)
    # Also after one more restart.
    spoil(village)
    assert len(village.stores["s0"].log.read(topic_of(STREAM), 0, 100)) == len(SAID)


def test_more_than_was_damaged_is_not_written_out_of_turn(village: Village) -> None:
    village.run(5.0)
    for body in SAID[:6]:
        village.publish("p0", body, wait=1.0)
    village.crash("s0")
    for body in SAID[6:]:
        village.publish("p0", body, wait=1.0)
    disk, topic = village.stores["s0"], topic_of(STREAM)
    assert isinstance(disk, OnDisk)
    disk.alter(SAID[2])
    machine = village.machine("s0")
    machine.handle(Asked(1, Start()), village.network.now)
    assert len(disk.log.read(topic, 0, 100)) == 5
    entries = village.stores["s1"].log.read(topic, 0, 100)
    units = tuple(decode_unit(entries[at][1].raw) for at in (2, 11))
    ann = village.identity["p0"]
    resent = Resent(topic, ann.author, ann.card.device, 2, 2, units, (ann.card,), True, None)
    streams = machine._parts.streams
    stream = streams._memberships.get(topic)
    assert stream is not None
    streams.repair.note_damage(disk.log.take_damage())
    out = machine._parts.out
    (mended,) = asked(out, streams.repair.handle_resent, stream, resent, village.network.now)
    assert isinstance(mended, AfterCommit)
    assert [entry.first for _, entry in disk.log.read(topic, 0, 100)] == [0, 1, 2, 3, 4, 5]
    assert len(streams.repair) == 0


def test_a_durable_subscription_is_told_of_what_is_damaged(village: Village) -> None:
    village.subscribe("s0", name="diary", wait=2.0)
    village.crash("s0")
    village.restart("s0")
    village.run(5.0)
    for body in SAID:
        village.publish("p0", body, wait=1.0)
    spoil(village, SAID[4])
    diary = village.subscribe("s0", name="diary", wait=5.0)
    assert village.bodies("s0", diary) == [body for body in SAID if body != SAID[4]]
    assert [m.reason for m in village.missed("s0", diary)] == [Reason.DAMAGED]


def test_what_a_storage_node_gives_back_at_once_is_not_told_as_missed(tmp_path: Path) -> None:
    own = OnDisk(tmp_path / "p0.db")
    village = Village(1, storage=1, peers=2, stores={"p0": own})
    village.run(5.0)
    for body in SAID:
        village.publish("p0", body, wait=1.0)
    village.run(5.0)
    for is_storage_there in (True, False):
        village.crash("p0")
        if not is_storage_there:
            village.crash("s0")
        own.alter(SAID[0])
        village.restart("p0")
        village.run(0.0 if is_storage_there else 5.0)
        history = village.subscribe("p0", since=0.0, wait=40.0)
        told = [(each.first, each.reason) for each in village.missed("p0", history)]
        if is_storage_there:
            assert (sorted(village.bodies("p0", history)), told) == (sorted(SAID), [])
        else:
            assert (village.bodies("p0", history), told) == (SAID[1:], [(0, Reason.DAMAGED)])
    own.close()


def test_a_reader_elsewhere_gets_everything_though_one_storage_node_is_damaged(village: Village) -> None:
    village.run(5.0)
    for body in SAID:
        village.publish("p0", body, wait=1.0)
    spoil(village, SAID[3])
    for name in ("p1", "p2"):
        village.subscribe(name, since=0.0, wait=20.0)
    village.run(60.0)
    late = village.subscribe("p1", since=0.0, wait=20.0)
    assert village.bodies("p1", late) == SAID
    assert not [r for _, r in village.notes.records if r.reason is Reason.BAD_SIGNATURE]
