"""A look through a whole store: what is damaged is found, whatever was altered, and nothing else."""

from __future__ import annotations

import random
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from tests.event.units import chain_of

from linnet.core.errors import StoreError
from linnet.core.stores import Entry
from linnet.event.signing import encode_unit, is_signed, is_sound
from linnet.store.scrub import note, scrub
from linnet.store.sqlite import SqliteStore
from linnet.testing.identities import known_identity

ANN = known_identity("ann")
COUNT = 300


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of real units."""
    path = tmp_path / "events.db"
    with closing(SqliteStore(path, is_sound)) as store:
        for verified in chain_of(ANN, COUNT):
            unit = verified.unit
            entry = Entry(
                unit.topic,
                unit.author,
                unit.device,
                unit.seq,
                len(unit.tails),
                verified.head,
                1.0,
                encode_unit(unit),
            )
            assert store.log.append(entry) is not None
        store.cells.put("card", ANN.author + ANN.card.device, msgspec.msgpack.encode(ANN.card))
        done = threading.Event()
        store.commit(done.set)
        assert done.wait(20)
    return path


def alter(path: Path, sql: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        assert db.execute(sql, values).rowcount == 1


def test_a_sound_store_is_read_whole(path: Path) -> None:
    seen: list[tuple[int, int]] = []
    found = scrub(path, is_signed, lambda done, total: seen.append((done, total)))
    assert (found.units, found.damaged, found.problems, found.is_sound) == (COUNT, {}, (), True)
    assert seen[-1] == (COUNT, COUNT)


@pytest.mark.parametrize("seed", range(20))
def test_one_altered_byte_anywhere_in_a_unit_is_found(path: Path, seed: int) -> None:
    luck = random.Random(seed)
    position = luck.randint(1, COUNT)
    with closing(sqlite3.connect(path)) as db:
        (raw,) = db.execute("SELECT raw FROM unit WHERE position = ?", (position,)).fetchone()
    at = luck.randrange(len(raw))
    wrong = raw[:at] + bytes([raw[at] ^ (1 << luck.randrange(8))]) + raw[at + 1 :]
    alter(path, "UPDATE unit SET raw = ? WHERE position = ?", wrong, position)
    (damage,) = scrub(path, is_signed).damaged.items()
    assert (damage[0], damage[1].first) == (position, position - 1)


def test_what_is_damaged_is_mended_in_its_place_by_the_same_unit(path: Path) -> None:
    with closing(SqliteStore(path, is_sound)) as store:
        topic = chain_of(ANN, 1)[0].unit.topic
        whole = store.log.read(topic, 0, COUNT)
    alter(path, "UPDATE unit SET raw = x'00' WHERE position = ?", 7)
    alter(path, "UPDATE unit SET head = zeroblob(32) WHERE position = ?", 8)
    note(path, scrub(path, is_signed).damaged)
    with closing(SqliteStore(path, is_sound)) as store:
        log = store.log
        assert [damage.first for damage in log.take_damage()] == [6, 7]
        assert log.take_damage() == []
        assert log.read(topic, 0, COUNT) == [each for each in whole if each[0] not in (7, 8)]
        assert [damage.first for damage in log.left_out] == [6, 7]
        assert [log.append(entry) for _, entry in whole[6:8]] == [None, None]
        assert log.read(topic, 0, COUNT) == whole
        assert log.left_out == ()
        assert log.kept(topic).units == COUNT
        store.commit(lambda: None)
    with closing(SqliteStore(path, is_sound)) as store:
        assert store.log.take_damage() == []
        assert store.log.read(topic, 0, COUNT) == whole
        assert store.log.get(whole[7][1].head) == whole[7][1]
    assert scrub(path, is_signed).is_sound


def test_what_is_damaged_can_still_be_evicted(path: Path) -> None:
    topic = chain_of(ANN, 1)[0].unit.topic
    alter(path, "UPDATE unit SET raw = x'00' WHERE position = ?", 1)
    with closing(SqliteStore(path, is_sound)) as store:
        assert len(store.log.read(topic, 0, 10)) == 10
        (damage,) = store.log.take_damage()
        assert store.log.is_damaged(damage)
        assert len(store.log.evict(topic, 2.0, None, 2 * COUNT)) == COUNT
        assert store.log.kept(topic).units == 0
        assert not store.log.is_damaged(damage)


def test_pages_of_a_damaged_log_are_as_long_as_was_asked(path: Path) -> None:
    topic, ann = chain_of(ANN, 1)[0].unit.topic, ANN
    for position in range(1, 100, 2):
        alter(path, "UPDATE unit SET raw = x'00' WHERE position = ?", position)
    with closing(SqliteStore(path, is_sound)) as store:
        assert len(store.log.read(topic, 0, 64)) == 64
        assert len(store.log.chain(topic, ann.author, ann.card.device, 0, COUNT, 64)) == 64


def test_a_file_that_is_broken_is_told(path: Path, tmp_path: Path) -> None:
    size = path.stat().st_size
    luck = random.Random(3)
    with path.open("r+b") as file:
        for _ in range(60):
            file.seek(luck.randrange(8192, size))
            file.write(luck.randbytes(16))
    try:
        is_whole = scrub(path, is_signed).is_sound
    except StoreError:
        is_whole = False
    assert not is_whole
    other = tmp_path / "other"
    other.write_bytes(b"no store" * 1000)
    with pytest.raises(StoreError):
        scrub(other, is_signed)
