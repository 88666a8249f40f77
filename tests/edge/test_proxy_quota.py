"""What goes when a client has too much."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linnet.core.ids import AuthorId, DeviceId, EventId, PeerId, TopicId
from linnet.core.stores import Entry
from linnet.edge.proxy import find_trims
from linnet.store.memory import MemoryStore

A, B = PeerId(b"a" * 32), PeerId(b"b" * 32)
TEA, RAIN = TopicId(b"1" * 32), TopicId(b"2" * 32)
AUTHOR, DEVICE = AuthorId(b"u" * 32), DeviceId(b"d" * 8)
CHAIN = AUTHOR + DEVICE


def log_of(**sizes: list[tuple[float, int]]) -> MemoryStore:
    """Streams with units of one chain each, by when they were stored and their bytes."""
    store = MemoryStore()
    for topic, units in sizes.items():
        name = TEA if topic == "tea" else RAIN
        for number, (at, size) in enumerate(units):
            head = EventId(name[:1] * 28 + number.to_bytes(4, "big"))
            store.log.append(Entry(name, AUTHOR, DEVICE, number, 1, head, at, bytes(size)))
    return store


def test_within_the_quota_nothing_goes() -> None:
    store = log_of(tea=[(1.0, 50), (2.0, 50)])
    assert find_trims(store.log, {A: (TEA,)}, {}, 100) == {}


def test_what_was_taken_goes_before_what_is_older_and_was_not() -> None:
    store = log_of(tea=[(1.0, 50), (2.0, 50)], rain=[(3.0, 50), (4.0, 50)])
    taken = {A: {RAIN: {CHAIN: 0}}}
    assert find_trims(store.log, {A: (TEA, RAIN)}, taken, 150) == {RAIN: 50}
    assert find_trims(store.log, {A: (TEA, RAIN)}, taken, 100) == {RAIN: 50, TEA: 50}
    assert find_trims(store.log, {A: (TEA, RAIN)}, {}, 150) == {TEA: 50}


def test_a_stream_is_trimmed_only_if_all_its_clients_have_too_much() -> None:
    store = log_of(tea=[(1.0, 50), (2.0, 50)], rain=[(3.0, 60)])
    clients = {A: (TEA, RAIN), B: (TEA,)}
    assert find_trims(store.log, clients, {}, 120) == {RAIN: 0}
    assert find_trims(store.log, clients, {}, 80) == {TEA: 0}


def test_what_one_of_two_clients_lacks_counts_as_not_taken() -> None:
    store = log_of(tea=[(1.0, 50)], rain=[(2.0, 50)])
    clients = {A: (TEA, RAIN), B: (TEA, RAIN)}
    taken = {A: {TEA: {CHAIN: 0}, RAIN: {CHAIN: 0}}, B: {RAIN: {CHAIN: 0}}}
    assert find_trims(store.log, clients, taken, 50) == {RAIN: 0}


@given(
    st.lists(st.tuples(st.floats(0, 100), st.integers(1, 40)), max_size=20),
    st.lists(st.tuples(st.floats(0, 100), st.integers(1, 40)), max_size=20),
    st.integers(0, 300),
)
def test_a_client_alone_ends_within_its_quota(
    tea: list[tuple[float, int]], rain: list[tuple[float, int]], most: int
) -> None:
    store = log_of(tea=sorted(tea), rain=sorted(rain))
    for topic, left in find_trims(store.log, {A: (TEA, RAIN)}, {}, most).items():
        store.log.evict(topic, None, left, 1024)
    assert store.log.kept(TEA).bytes + store.log.kept(RAIN).bytes <= most
