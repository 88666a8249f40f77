"""What a relay keeps of a room, where, and how it goes."""

from __future__ import annotations

import sys
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rooms.relay.scenes import World

from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.core.stores import Store
from linnet.delivery.context import CardBook
from linnet.event.event import Verified
from linnet.event.signing import encode_unit
from linnet.machine.outbox import Outbox
from linnet.rooms.relay.event_cache import EventCache, derive_topic
from linnet.rooms.relay.event_index import Budget
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

WORLD = World()
SAID = [WORLD.chronicle.units[WORLD.say("ann" if n % 3 else "ben", b"%03d" % n).id] for n in range(40)]
CONTROL = [unit for unit in WORLD.chronicle.units.values() if unit not in SAID]
SIZE = len(encode_unit(SAID[0].unit))


def cache_on(store: Store | None = None, budget: int = 10**9, out: Outbox | None = None) -> EventCache:
    store = MemoryStore() if store is None else store
    cards = CardBook(store.cells)
    for unit in CONTROL:
        for card in WORLD.cards([unit.unit]):
            cards.learn(card)
    return EventCache(WORLD.room, store, cards, Budget(budget), 100, Outbox() if out is None else out)


def records_of(out: Outbox) -> list[Record]:
    """All that a cache asks for are records."""
    effects = out.take()
    records = [each for each in effects if isinstance(each, Record)]
    assert records == effects
    return records


def heads(cache: EventCache, after: int = 0, since: float = 0.0) -> list[EventId]:
    return [entry.head for _, entry in cache.read(after, since, 1000)]


def test_control_events_and_the_two_caches_are_read_as_one_in_the_order_of_coming() -> None:
    store = MemoryStore()
    cache = cache_on(store)
    order = [CONTROL[0], SAID[0], SAID[1], CONTROL[1], SAID[2]]
    positions = [
        cache.keep_control(unit, True, 1.0) if unit in CONTROL else cache.keep(unit, n % 2 == 0, 1.0)
        for n, unit in enumerate(order)
    ]
    assert positions == sorted(positions)
    assert heads(cache) == [unit.head for unit in order]
    assert heads(cache, positions[2]) == [unit.head for unit in order[3:]]
    assert [cache.position(unit.head) for unit in order] == positions
    assert cache.position(SAID[9].head) is None
    assert cache.first == positions[0]
    assert store.log.kept(WORLD.room).units == 2
    assert [store.log.kept(topic).units for topic in cache.topics] == [2, 1]
    assert len({WORLD.room, *cache.topics}) == 3
    assert derive_topic(WORLD.room, b"peers") == cache.topics[0]


def test_it_is_the_same_after_a_restart() -> None:
    store = MemoryStore()
    cache = cache_on(store)
    for unit in CONTROL:
        cache.keep_control(unit, False, 1.0)
    cache.keep(SAID[0], True, 1.0)
    cache.keep(SAID[1], True, 2.0)
    cache.expire_before(1.5)
    again = cache_on(store)
    assert [event.id for event in again.restore()] == [unit.head for unit in CONTROL]
    assert (again.floor, again.expired, again.evicted) == (cache.floor, 1, 0)
    assert again.control == cache.control
    assert again.usage.shares == cache.usage.shares
    assert again.tombstones.reason(SAID[0].head) is Reason.RETENTION


def test_what_came_from_peers_is_for_the_other_relays() -> None:
    store = MemoryStore()
    cache = cache_on(store)
    cache.keep_control(CONTROL[0], False, 1.0)
    first = cache.keep_control(CONTROL[1], True, 1.0)
    cache.keep(SAID[0], False, 1.0)
    cache.keep(SAID[1], True, 1.0)

    def due(cache: EventCache, after: int) -> list[EventId]:
        return [entry.head for _, entry in cache.from_peers(after, 0.0, 10)]

    for each in (cache, cache_on(store)):
        assert due(each, 0) == [CONTROL[1].head, SAID[1].head]
        assert due(each, first) == [SAID[1].head]
    cache.note_forwarded(first)
    assert due(cache_on(store), 0) == [SAID[1].head]


def test_what_is_too_old_is_not_given_even_before_it_is_removed() -> None:
    cache = cache_on()
    cache.keep_control(CONTROL[0], False, 0.0)
    for at, unit in enumerate(SAID[:4]):
        cache.keep(unit, True, float(at))
    assert heads(cache, 0, 2.0) == [CONTROL[0].head, SAID[2].head, SAID[3].head]
    assert cache.unit(SAID[1].head, 2.0) is None
    assert cache.unit(SAID[2].head, 2.0) == SAID[2].unit
    assert cache.unit(CONTROL[0].head, 2.0) == CONTROL[0].unit
    assert cache.unit(SAID[9].head, 0.0) is None


def test_records_of_what_expires() -> None:
    out = Outbox()
    cache = cache_on(out=out)
    cache.keep(SAID[0], True, 1.0)
    cache.keep(SAID[1], False, 2.0)
    last = cache.keep(SAID[2], False, 3.0)
    cache.expire_before(3.0)
    assert [(each.kind, each.event, each.reason, each.note) for each in records_of(out)] == [
        (Kind.EXPIRED, unit.head, Reason.RETENTION, "message") for unit in SAID[:2]
    ]
    assert cache.floor < last
    assert cache.oldest == 3.0
    assert (cache.usage.events, cache.expired) == (1, 2)


@pytest.mark.parametrize("first_from_peer", [True, False])
def test_the_oldest_goes_first_whoever_brought_it(first_from_peer: bool) -> None:
    out = Outbox()
    cache = cache_on(out=out)
    cache.keep(SAID[0], first_from_peer, 1.0)
    cache.keep(SAID[1], not first_from_peer, 2.0)
    assert cache.make_room(SIZE, 2 * SIZE)
    assert [record.event for record in records_of(out)] == [SAID[0].head]


def test_all_rooms_share_a_budget() -> None:
    out = Outbox()
    cache = cache_on(budget=2 * SIZE, out=out)
    cache.keep(SAID[0], True, 1.0)
    cache.keep(SAID[1], True, 1.0)
    assert cache.make_room(SIZE, 10 * SIZE)
    assert len(records_of(out)) == 1
    assert not cache.make_room(3 * SIZE, 10 * SIZE)
    assert not cache.make_room(11 * SIZE, 10 * SIZE)
    assert out.take() == []
    assert cache.usage.events == 1


def test_a_room_that_is_left_is_forgotten_with_records() -> None:
    store, out = MemoryStore(), Outbox()
    cache = cache_on(store, out=out)
    for unit in CONTROL:
        cache.keep_control(unit, True, 1.0)
    cache.keep(SAID[0], True, 1.0)
    events = []
    while cache.forget_some(Reason.NOT_A_RELAY):
        records = records_of(out)
        assert records != []
        events += [each.event for each in records]
    assert out.take() == []
    assert events == [SAID[0].head, *(unit.head for unit in CONTROL)]
    left = ("relay.at", "relay.ours", "relay.gone", "relay.share")
    assert [list(store.cells.scan(f"{space}/{WORLD.room.hex()}")) for space in left] == [[]] * 4
    assert store.cells.get("relay.meta", WORLD.room) is None


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("keep"), st.booleans()),
            st.tuples(st.just("expire"), st.integers(0, 40)),
            st.tuples(st.just("evict"), st.integers(1, 6)),
        ),
        max_size=40,
    )
)
def test_nothing_past_the_floor_is_ever_missing(steps: list[tuple[str, int]]) -> None:
    """Whoever's cursor is not before the floor gets all that came after it."""
    cache = cache_on()
    kept: dict[int, Verified] = {}
    clock = 0
    for what, value in steps:
        if what == "keep" and clock < len(SAID):
            kept[cache.keep(SAID[clock], bool(value), float(clock))] = SAID[clock]
            clock += 1
        elif what == "expire":
            cache.expire_before(float(value))
        elif what == "evict":
            cache.make_room(SIZE, value * SIZE)
        past = [unit.head for at, unit in kept.items() if at > cache.floor]
        assert heads(cache, cache.floor) == past
        held = heads(cache)
        gone = [unit for unit in kept.values() if unit.head not in held]
        assert all(cache.tombstones.reason(unit.head) is not None for unit in gone)
        assert cache.usage.events == len(held)


def _many(count: int) -> list[Verified]:
    world = World()
    return [world.chronicle.units[world.say("ann", b"%d" % number).id] for number in range(count)]


def test_a_page_costs_the_same_in_a_long_cache_as_in_a_short_one() -> None:
    """By the calls that it takes: a measure that no other load on the machine disturbs."""
    units = _many(3000)

    def calls(count: int) -> int:
        cache = cache_on()
        positions = [cache.keep(unit, True, 1.0) for unit in units[:count]]
        seen = 0

        def counted(frame: FrameType, event: str, argument: object) -> None:
            nonlocal seen
            seen += event in ("call", "c_call")

        sys.setprofile(counted)
        try:
            page = cache.read(positions[-11], 0.0, 5)
        finally:
            sys.setprofile(None)
        assert [entry.head for _, entry in page] == [unit.head for unit in units[count - 10 : count - 5]]
        return seen

    assert calls(3000) <= calls(100) + 50
