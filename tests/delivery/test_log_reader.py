"""Subscriptions that live on the log: what is handed over, what waits there, where one goes on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.delivery.voices import TOPIC, Voice

from linnet.core.effects import Deliver
from linnet.core.ids import EventId, TopicId
from linnet.core.stores import Entry
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.items import CaughtUp, Ended, Item, Overdue
from linnet.delivery.log_reader import LogReader, Shown
from linnet.delivery.subscription import Cursor, Window
from linnet.event.event import Event, Verified
from linnet.event.signing import encode_unit
from linnet.store.memory import MemoryStore

UNITS = Voice().units(600)
EVENTS = [unit.events[0] for unit in UNITS]
LATE = Overdue(TOPIC, EventId(b"e" * 32), ())
STORED = 5.0
NOW_LIVE = CaughtUp(STORED, False, None)


def everything(event: Event) -> Event | None:
    return event


def even(event: Event) -> Event | None:
    return event if (event.seq or 0) % 2 == 0 else None


def write(store: MemoryStore, *units: Verified) -> int:
    """Append units; the position of the last."""
    position = 0
    for unit in units:
        event = unit.events[0]
        entry = Entry(
            event.topic, event.author, event.device, event.seq, 1, event.id, STORED, encode_unit(unit.unit)
        )
        position = store.log.append(entry) or 0
    return position


def reader_of(
    store: MemoryStore,
    *,
    window: int = 1000,
    buffer: int = 1000,
    name: str | None = None,
    after: int = 0,
    live: bool = True,
    shown: Shown = everything,
) -> LogReader:
    cursor = None if name is None else Cursor(TOPIC, name, store.cells)
    config = DeliveryConfig(window_items=window, buffer_items=buffer)
    return LogReader(TOPIC, Window(7, config), cursor, after, live, shown)


def items(effects: list[Deliver[Item]]) -> list[Item]:
    assert all(effect.subscription == 7 for effect in effects)
    return [item for effect in effects for item in effect.items]


# What is handed over.


def test_the_log_is_handed_over_and_then_it_is_said_that_this_was_all() -> None:
    store = MemoryStore()
    write(store, *UNITS[:3])
    assert items(reader_of(store).pump(store.log)) == [*EVENTS[:3], NOW_LIVE]


def test_an_empty_log_has_no_beginning() -> None:
    store = MemoryStore()
    assert items(reader_of(store).pump(store.log)) == [CaughtUp(None, False, None)]


def test_a_log_of_many_pages_is_handed_over_whole() -> None:
    store = MemoryStore()
    for count in (256, 512, 600):
        write(store, *UNITS[store.log.kept(TOPIC).units : count])
        assert items(reader_of(store).pump(store.log)) == [*EVENTS[:count], NOW_LIVE]


def test_other_topics_are_not_read() -> None:
    store = MemoryStore()
    write(store, *Voice("ben", TopicId(b"u" * 32)).units(2), UNITS[0])
    assert items(reader_of(store).pump(store.log)) == [EVENTS[0], NOW_LIVE]


def test_what_lies_before_its_beginning_is_not_handed_over() -> None:
    store = MemoryStore()
    after = write(store, *UNITS[:2])
    write(store, UNITS[2])
    assert items(reader_of(store, after=after).pump(store.log)) == [EVENTS[2], NOW_LIVE]


def test_a_reader_sees_what_it_is_to_see() -> None:
    store = MemoryStore()
    write(store, *UNITS[:4])
    reader = reader_of(store, shown=even)
    assert items(reader.pump(store.log)) == [EVENTS[0], EVENTS[2], NOW_LIVE]
    assert reader.written(write(store, UNITS[5]), EVENTS[5]) == []
    assert items(reader.written(write(store, UNITS[6]), EVENTS[6])) == [EVENTS[6]]


def test_what_is_hidden_takes_no_place_in_the_window() -> None:
    store = MemoryStore()
    write(store, *UNITS[:6])
    reader = reader_of(store, window=3, shown=even)
    assert items(reader.pump(store.log))[:3] == [EVENTS[0], EVENTS[2], EVENTS[4]]


def test_history_alone_ends_where_the_log_ends() -> None:
    store = MemoryStore()
    write(store, *UNITS[:2])
    reader = reader_of(store, live=False)
    assert items(reader.pump(store.log)) == [*EVENTS[:2], NOW_LIVE, Ended(None)]
    assert reader.written(write(store, UNITS[2]), EVENTS[2]) == []
    assert reader.handled(4, store.log) == []


def test_before_it_has_caught_up_what_is_written_is_read_from_the_log() -> None:
    """Else it would be handed over before what came before it."""
    store = MemoryStore()
    write(store, UNITS[0])
    reader = reader_of(store)
    assert reader.written(write(store, UNITS[1]), EVENTS[1]) == []
    assert items(reader.pump(store.log)) == [*EVENTS[:2], NOW_LIVE]


# Slow readers.


def test_a_slow_reader_is_waited_for_in_the_log() -> None:
    """However many they are: nothing of it waits in memory, and the subscription does not end."""
    store = MemoryStore()
    reader = reader_of(store, window=4, buffer=1)
    reader.pump(store.log)
    reader.handled(1, store.log)
    got: list[Item] = []
    for unit in UNITS[:300]:
        got += items(reader.written(write(store, unit), unit.events[0]))
    assert got == EVENTS[:4]
    assert items(reader.handled(1, store.log)) == [EVENTS[4]]
    assert reader.written(write(store, UNITS[300]), EVENTS[300]) == []
    got.append(EVENTS[4])
    while more := items(reader.handled(4, store.log)):
        got += more
    assert got == EVENTS[:301]
    assert not reader.window.ended


def test_it_is_said_once_that_it_has_caught_up() -> None:
    store = MemoryStore()
    reader = reader_of(store, window=1)
    assert items(reader.pump(store.log)) == [CaughtUp(None, False, None)]
    write(store, UNITS[0])
    assert reader.written(write(store, UNITS[1]), EVENTS[1]) == []
    got = [items(reader.handled(1, store.log)) for _ in range(3)]
    assert got == [[EVENTS[0]], [EVENTS[1]], []]


@given(
    st.lists(st.one_of(st.none(), st.integers(min_value=1, max_value=5)), max_size=60),
    st.integers(min_value=1, max_value=4),
    st.sampled_from((everything, even)),
)
def test_nothing_is_lost_doubled_or_out_of_order(steps: list[int | None], window: int, shown: Shown) -> None:
    """None: an event is written. A number: so many are handled."""
    store = MemoryStore()
    reader = reader_of(store, window=window, shown=shown)
    got = items(reader.pump(store.log))
    written = handled = 0
    for step in steps:
        if step is None:
            unit = UNITS[written]
            written += 1
            got += items(reader.written(write(store, unit), unit.events[0]))
        else:
            done = min(step, len(got) - handled)
            handled += done
            got += items(reader.handled(done, store.log))
        assert len(got) - handled <= window
    while handled < len(got):
        handled += 1
        got += items(reader.handled(1, store.log))
    assert got[1:] == [event for event in EVENTS[:written] if shown(event)]


# Durable ones.


def test_a_durable_reader_goes_on_behind_what_was_handled() -> None:
    store = MemoryStore()
    write(store, *UNITS[:4])
    reader = reader_of(store, name="app")
    reader.pump(store.log)
    reader.handled(2, store.log)
    assert items(reader_of(store, name="app").pump(store.log)) == [*EVENTS[2:4], NOW_LIVE]
    assert items(reader_of(store, name="other").pump(store.log))[:1] == [EVENTS[0]]


def test_a_durable_reader_keeps_its_place_while_it_is_live() -> None:
    store = MemoryStore()
    reader = reader_of(store, name="app")
    reader.pump(store.log)
    for unit in UNITS[:3]:
        reader.written(write(store, unit), unit.events[0])
    reader.handled(2, store.log)  # that it has caught up, and one event
    assert items(reader_of(store, name="app").pump(store.log))[:2] == EVENTS[1:3]


def test_a_note_is_handed_over_in_its_turn_and_counts_as_no_event() -> None:
    store = MemoryStore()
    reader = reader_of(store, name="app", window=2)
    reader.pump(store.log)
    reader.handled(1, store.log)
    reader.written(write(store, UNITS[0]), EVENTS[0])
    assert items(reader.note(LATE)) == [LATE]
    assert reader.note(LATE) == []
    assert reader.written(write(store, UNITS[1]), EVENTS[1]) == []
    assert items(reader.handled(2, store.log)) == [LATE, EVENTS[1]]
    assert items(reader_of(store, name="app").pump(store.log))[:1] == [EVENTS[1]]
