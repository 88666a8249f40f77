"""What every store promises, on each engine, and that the engines agree."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from tests.store.entries import ANN, BEN, NEWS, PHONE, SPORT, TABLET, unit

from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.stores import ChainHead, Entry, Kept
from linnet.store.base import CommittingStore
from linnet.store.memory import MemoryStore
from linnet.store.sqlite import SqliteStore

WAIT = 20.0
"""Seconds after which a commit is taken for lost."""


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CommittingStore]:
    engine: CommittingStore = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "s.db")
    yield engine
    engine.close()


@pytest.fixture(params=["pending", "handed over", "durable"])
def settle(request: pytest.FixtureRequest) -> Callable[[CommittingStore], None]:
    """How far what was written has come: reads must see it all the same."""
    if request.param == "pending":
        return lambda store: None
    if request.param == "handed over":
        return lambda store: store.commit(lambda: None)
    return commit


def commit(store: CommittingStore) -> None:
    done = threading.Event()
    store.commit(done.set)
    assert done.wait(WAIT)
    # Another one lets the engine forget what it need not remember.
    done.clear()
    store.commit(done.set)
    assert done.wait(WAIT)


def fill(store: CommittingStore, *units: Entry) -> list[int | None]:
    return [store.log.append(entry) for entry in units]


def test_positions_grow_over_all_topics(store: CommittingStore) -> None:
    assert store.log.end() == 0
    assert fill(store, unit(1), unit(1, topic=SPORT), unit(2)) == [1, 2, 3]
    assert store.log.end() == 3


def test_a_unit_is_stored_once(store: CommittingStore, settle: Callable[[CommittingStore], None]) -> None:
    units = [unit(1, at=1.0), unit(2, 3, at=2.0), unit(None, at=3.0)]
    assert fill(store, *units) == [1, 2, 3]
    settle(store)
    assert fill(store, *(unit(u.first, u.count, at=9.0) for u in units)) == [None, None, None]
    assert [store.log.get(u.head) for u in units] == units
    assert store.log.end() == 3


def test_another_framing_of_the_same_head_is_the_same_unit(
    store: CommittingStore, settle: Callable[[CommittingStore], None]
) -> None:
    assert fill(store, unit(1, 10)) == [1]
    settle(store)
    assert fill(store, unit(10), unit(5, 6)) == [None, None]


def test_an_unknown_head_is_not_there(store: CommittingStore) -> None:
    fill(store, unit(1))
    assert store.log.get(EventId(b"?" * 32)) is None


def test_a_topic_is_read_in_pages(store: CommittingStore, settle: Callable[[CommittingStore], None]) -> None:
    units = [unit(n, topic=topic) for n in range(1, 6) for topic in (NEWS, SPORT)]
    fill(store, *units[:6])
    settle(store)
    fill(store, *units[6:])
    news = [(1, units[0]), (3, units[2]), (5, units[4]), (7, units[6]), (9, units[8])]
    assert store.log.read(NEWS, 0, 100) == news
    assert store.log.read(NEWS, 0, 2) == news[:2]
    assert store.log.read(NEWS, 3, 2) == news[2:4]
    assert store.log.read(NEWS, 9, 2) == []
    assert store.log.read(TopicId(b"none" * 8), 0, 2) == []


def test_a_range_of_a_chain_finds_the_units_that_overlap_it(
    store: CommittingStore, settle: Callable[[CommittingStore], None]
) -> None:
    burst, single, late = unit(1, 256), unit(257), unit(300, 10)
    fill(store, late, single, unit(1, device=TABLET))
    settle(store)
    fill(store, burst, unit(1, author=BEN))

    def chain(first: int, last: int, limit: int = 10) -> list[Entry]:
        return store.log.chain(NEWS, ANN, PHONE, first, last, limit)

    assert chain(0, 1000) == [burst, single, late]
    assert chain(256, 256) == [burst]
    assert chain(256, 257) == [burst, single]
    assert chain(258, 299) == []
    assert chain(305, 400) == [late]
    assert chain(1, 1000, limit=2) == [burst, single]
    assert store.log.chain(SPORT, ANN, PHONE, 0, 1000, 10) == []


def test_heads_come_in_the_order_of_their_first_units(
    store: CommittingStore, settle: Callable[[CommittingStore], None]
) -> None:
    fill(store, unit(5, author=BEN), unit(1, 4), unit(None, device=TABLET), unit(9))
    settle(store)
    fill(store, unit(2, 2, author=BEN), unit(7, topic=SPORT))
    assert store.log.heads(NEWS) == [
        ChainHead(BEN, PHONE, 2, 5, unit(5, author=BEN).head),
        ChainHead(ANN, PHONE, 1, 9, unit(9).head),
    ]


def test_of_two_ends_the_first_stored_counts(
    store: CommittingStore, settle: Callable[[CommittingStore], None]
) -> None:
    fill(store, unit(3), unit(4, twin=1))
    settle(store)
    fill(store, unit(4))
    assert store.log.heads(NEWS) == [ChainHead(ANN, PHONE, 3, 4, unit(4, twin=1).head)]
    assert [u.head for u in store.log.evict(NEWS, None, 10, 10)] == [unit(3).head, unit(4, twin=1).head]
    assert store.log.heads(NEWS) == [ChainHead(ANN, PHONE, 4, 4, unit(4).head)]


def test_what_is_kept_is_counted(store: CommittingStore, settle: Callable[[CommittingStore], None]) -> None:
    assert store.log.kept(NEWS) == Kept(0, 0, 0, None)
    fill(store, unit(1, 5, at=7.0, size=100), unit(6, at=8.0), unit(1, topic=SPORT, at=1.0))
    settle(store)
    assert store.log.kept(NEWS) == Kept(2, 6, 110, 7.0)


def test_a_time_becomes_a_position(store: CommittingStore, settle: Callable[[CommittingStore], None]) -> None:
    fill(store, unit(1, at=10.0), unit(2, at=20.0), unit(3, at=20.0))
    settle(store)
    fill(store, unit(4, at=30.0))
    assert [store.log.since(NEWS, at) for at in (5.0, 10.0, 10.5, 20.0, 25.0, 30.0, 31.0)] == [
        0, 0, 1, 1, 3, 3, 4,
    ]  # fmt: skip


def test_a_clock_that_went_back_hides_nothing(
    store: CommittingStore, settle: Callable[[CommittingStore], None]
) -> None:
    fill(store, unit(1, at=10.0), unit(2, at=50.0), unit(3, at=20.0), unit(4, at=40.0))
    settle(store)
    assert store.log.since(NEWS, 30.0) == 3
    assert [u.first for u in store.log.evict(NEWS, 30.0, None, 10)] == [1, 2, 3]


def test_the_oldest_are_evicted_by_age(
    store: CommittingStore, settle: Callable[[CommittingStore], None]
) -> None:
    fill(store, *(unit(n, at=float(n)) for n in range(1, 6)), unit(1, topic=SPORT))
    settle(store)
    assert [u.first for u in store.log.evict(NEWS, 4.0, None, 2)] == [1, 2]
    assert [u.first for u in store.log.evict(NEWS, 4.0, None, 2)] == [3]
    assert store.log.evict(NEWS, 4.0, None, 2) == []
    assert [store.log.get(unit(n).head) is not None for n in (1, 3, 4)] == [False, False, True]
    settle(store)
    assert store.log.kept(NEWS) == Kept(2, 2, 20, 4.0)
    assert store.log.heads(NEWS) == [ChainHead(ANN, PHONE, 4, 5, unit(5).head)]
    assert [position for position, _ in store.log.read(NEWS, 0, 10)] == [4, 5]
    assert store.log.get(unit(3).head) is None
    assert store.log.chain(NEWS, ANN, PHONE, 1, 4, 10) == [unit(4, at=4.0)]
    assert store.log.kept(SPORT).units == 1


def test_the_oldest_are_evicted_until_the_rest_fits(
    store: CommittingStore, settle: Callable[[CommittingStore], None]
) -> None:
    fill(store, *(unit(n, at=float(n), size=100) for n in range(1, 201)))
    settle(store)
    assert store.log.evict(NEWS, None, 20_000, 1000) == []
    assert [u.first for u in store.log.evict(NEWS, None, 10_050, 1000)] == list(range(1, 101))
    assert [u.first for u in store.log.evict(NEWS, 150.0, 10_050, 1000)] == list(range(101, 150))
    assert store.log.kept(NEWS) == Kept(51, 51, 5100, 150.0)


def test_an_evicted_unit_may_come_again(
    store: CommittingStore, settle: Callable[[CommittingStore], None]
) -> None:
    fill(store, unit(1), unit(1, author=BEN))
    settle(store)
    assert len(store.log.evict(NEWS, None, 0, 10)) == 2
    assert store.log.heads(NEWS) == []
    assert store.log.kept(NEWS) == Kept(0, 0, 0, None)
    settle(store)
    assert fill(store, unit(1, author=BEN), unit(1)) == [3, 4]
    settle(store)
    assert [head.author for head in store.log.heads(NEWS)] == [BEN, ANN]
    assert store.log.get(unit(1).head) == unit(1)
    assert [position for position, _ in store.log.read(NEWS, 0, 10)] == [3, 4]


def test_cells_are_set_changed_and_forgotten(
    store: CommittingStore, settle: Callable[[CommittingStore], None]
) -> None:
    cells = store.cells
    for key in (b"b", b"a", b"\xff", b""):
        cells.put("cursors", key, b"1" + key)
    cells.put("cards", b"a", b"card")
    settle(store)
    cells.put("cursors", b"a", b"2")
    cells.delete("cursors", b"b")
    cells.delete("cursors", b"never")
    settle(store)
    assert (cells.get("cursors", b"a"), cells.get("cursors", b"b")) == (b"2", None)
    assert list(cells.scan("cursors")) == [(b"", b"1"), (b"a", b"2"), (b"\xff", b"1\xff")]
    assert list(cells.scan("cards")) == [(b"a", b"card")]
    assert list(cells.scan("none")) == []


def test_cells_may_change_while_they_are_scanned(store: CommittingStore) -> None:
    for key in (b"a", b"b"):
        store.cells.put("x", key, key)
    for key, _ in store.cells.scan("x"):
        store.cells.delete("x", key)
    assert list(store.cells.scan("x")) == []


def test_a_rollback_forgets_what_was_not_committed(
    store: CommittingStore, settle: Callable[[CommittingStore], None]
) -> None:
    fill(store, unit(1, at=1.0), unit(1, author=BEN, at=2.0))
    store.cells.put("x", b"k", b"old")
    commit(store)
    before = picture(store)
    store.log.evict(NEWS, None, 0, 10)
    fill(store, unit(1), unit(2, at=0.5), unit(1, topic=SPORT))
    store.cells.put("x", b"k", b"new")
    store.cells.delete("x", b"k")
    store.rollback()
    assert picture(store) == before
    assert fill(store, unit(2, at=3.0)) == [3]
    settle(store)
    assert store.log.kept(NEWS) == Kept(3, 3, 30, 1.0)


def test_done_is_called_at_once_if_nothing_is_under_way(store: CommittingStore) -> None:
    called: list[int] = []
    store.commit(lambda: called.append(threading.get_ident()))
    assert called == [threading.get_ident()]


def test_commits_are_done_in_their_order(store: CommittingStore) -> None:
    order: list[int] = []
    for n in range(100):
        if n % 3:
            fill(store, unit(n))
        store.commit(lambda n=n: order.append(n))  # type: ignore[misc]
    commit(store)
    assert order == list(range(100))
    assert (store.backlog, store.failed) == (0, None)


def picture(store: CommittingStore) -> object:
    """All that can be read of a store."""
    log = store.log
    topics = [NEWS, SPORT]
    units = [log.read(topic, 0, 1000) for topic in topics]
    return (
        units,
        [log.get(entry.head) for held in units for _, entry in held],
        [log.heads(topic) for topic in topics],
        [log.kept(topic) for topic in topics],
        [log.since(topic, 5.0) for topic in topics],
        log.end(),
        [list(store.cells.scan(space)) for space in ("x", "y")],
    )


UNITS = st.builds(
    unit,
    st.one_of(st.none(), st.integers(1, 12)),
    st.just(1) | st.integers(2, 5),
    topic=st.sampled_from([NEWS, SPORT]),
    author=st.sampled_from([ANN, BEN]),
    device=st.sampled_from([PHONE, TABLET]),
    at=st.integers(0, 10).map(float),
    size=st.integers(0, 30),
    twin=st.integers(0, 1),
).map(lambda entry: entry if entry.first is not None else _alone(entry))


def _alone(entry: Entry) -> Entry:
    return Entry(entry.topic, entry.author, entry.device, None, 1, entry.head, entry.stored_at, entry.raw)


class Engines(RuleBasedStateMachine):
    """The same operations on both engines, with the file closed and opened in between."""

    @initialize()
    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "store.db"
        self.memory = MemoryStore()
        self.sqlite = SqliteStore(self.path)

    def teardown(self) -> None:
        if hasattr(self, "sqlite"):
            assert picture(self.sqlite) == picture(self.memory)
            self.sqlite.close()
            self.folder.cleanup()

    def both(self, ask: Callable[[CommittingStore], object]) -> None:
        assert ask(self.sqlite) == ask(self.memory)

    @rule(units=st.lists(UNITS, min_size=1, max_size=6))
    def append(self, units: list[Entry]) -> None:
        self.both(lambda store: fill(store, *units))

    @rule(entry=UNITS)
    def get(self, entry: Entry) -> None:
        self.both(lambda store: store.log.get(entry.head))

    @rule(topic=st.sampled_from([NEWS, SPORT]), after=st.integers(0, 20), limit=st.integers(0, 9))
    def read(self, topic: TopicId, after: int, limit: int) -> None:
        self.both(lambda store: store.log.read(topic, after, limit))

    @rule(
        author=st.sampled_from([ANN, BEN]),
        device=st.sampled_from([PHONE, TABLET]),
        first=st.integers(0, 18),
        length=st.integers(0, 8),
        limit=st.integers(0, 5),
    )
    def chain(self, author: AuthorId, device: DeviceId, first: int, length: int, limit: int) -> None:
        self.both(lambda store: store.log.chain(NEWS, author, device, first, first + length, limit))

    @rule(
        topic=st.sampled_from([NEWS, SPORT]),
        before=st.none() | st.integers(0, 11).map(float),
        max_bytes=st.none() | st.integers(0, 200),
        limit=st.integers(0, 8),
    )
    def evict(self, topic: TopicId, before: float | None, max_bytes: int | None, limit: int) -> None:
        self.both(lambda store: store.log.evict(topic, before, max_bytes, limit))

    @rule(topic=st.sampled_from([NEWS, SPORT]), at=st.integers(0, 11))
    def look(self, topic: TopicId, at: int) -> None:
        self.both(lambda s: (s.log.heads(topic), s.log.kept(topic), s.log.since(topic, at), s.log.end()))

    @rule(
        space=st.sampled_from(["x", "y"]), key=st.binary(max_size=1), value=st.none() | st.binary(max_size=3)
    )
    def write_cell(self, space: str, key: bytes, value: bytes | None) -> None:
        for store in (self.sqlite, self.memory):
            if value is None:
                store.cells.delete(space, key)
            else:
                store.cells.put(space, key, value)
        self.both(lambda store: list(store.cells.scan(space)))

    @rule()
    def hand_over(self) -> None:
        for store in (self.sqlite, self.memory):
            store.commit(lambda: None)

    @rule()
    def commit(self) -> None:
        commit(self.sqlite)
        commit(self.memory)

    @rule()
    def rollback(self) -> None:
        self.sqlite.rollback()
        self.memory.rollback()
        self.both(picture)

    @rule()
    def reopen(self) -> None:
        self.sqlite.close()
        self.sqlite = SqliteStore(self.path)
        self.memory.close()
        self.both(picture)


# A soak tries a thousand runs with a file each; on a busy machine this takes minutes.
test_engines_agree = pytest.mark.timeout(900)(Engines.TestCase)
