"""Subscriptions over a log: everything once, in its order, as far as the application keeps up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linnet.core.effects import Deliver
from linnet.core.ids import EventId, TopicId
from linnet.core.stores import Entry
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.items import CaughtUp, Ended, Item, Overdue
from linnet.delivery.log_reader import LogReader
from linnet.delivery.subscription import Cursor, Window
from linnet.event.event import Event, Verified
from linnet.event.signing import encode_unit, message_tail, sign_unit
from linnet.sim.identities import seeded_identity
from linnet.store.memory import MemoryStore

TOPIC = TopicId(b"t" * 32)
WHO = seeded_identity(1, "ann", 0.0)


def said(number: int) -> Verified:
    card = WHO.card
    return sign_unit(
        WHO.device, TOPIC, card.person, card.device, number, None, (message_tail(str(number).encode(), 1),)
    )


class Scene:
    """A log, a reader of it, and an application that handles what it is handed when it likes."""

    def __init__(self, window: int = 4, durable: bool = True, after: int = 0, live: bool = True) -> None:
        self.store = MemoryStore()
        self.config = DeliveryConfig(window_items=window)
        self.durable = durable
        self.hidden: set[bytes] = set()
        self.written = 0
        self.reader = self.read(after, live)

    def read(self, after: int = 0, live: bool = True) -> LogReader:
        cursor = Cursor(TOPIC, "app", self.store.cells) if self.durable else None
        if cursor is not None and not cursor.resumed:
            cursor.begin(after)
        self.handed: list[Item] = []
        self.flying = 0
        reader = LogReader(TOPIC, Window(1, self.config), cursor, after, live, self.shown)
        self.reader = reader
        self.take(reader.pump(self.store.log))
        return reader

    def shown(self, event: Event) -> Event | None:
        return None if event.body in self.hidden else event

    def take(self, effects: list[Deliver[Item]]) -> None:
        for effect in effects:
            self.handed += effect.items
            self.flying += len(effect.items)

    def write(self, count: int = 1) -> None:
        for _ in range(count):
            made = said(self.written)
            card = WHO.card
            entry = Entry(
                TOPIC, card.person, card.device, self.written, 1, made.head, 0.0, encode_unit(made.unit)
            )
            position = self.store.log.append(entry)
            assert position is not None
            self.written += 1
            self.take(self.reader.written(position, made.events[0]))

    def handle(self, count: int) -> None:
        self.flying -= count
        self.take(self.reader.handled(count, self.store.log))

    @property
    def bodies(self) -> list[int]:
        return [int(item.body) for item in self.handed if isinstance(item, Event)]


def test_what_is_there_then_a_word_then_what_comes() -> None:
    scene = Scene(window=10)
    scene.write(2)
    assert scene.bodies == [0, 1]
    scene.read()
    assert [type(item) for item in scene.handed] == [Event, Event, CaughtUp]
    scene.write()
    assert scene.bodies == [0, 1, 2]


def test_who_is_slow_is_waited_for_in_the_log() -> None:
    scene = Scene(window=4)
    scene.handle(1)  # the word that all was read
    scene.write(10)
    assert scene.bodies == [0, 1, 2, 3]
    scene.handle(3)
    assert scene.bodies == [0, 1, 2, 3, 4, 5, 6]
    scene.handle(4)
    assert scene.bodies == list(range(10))
    scene.write(2)
    assert scene.bodies == list(range(11))  # no room again
    scene.handle(4)
    assert scene.bodies == list(range(12))
    assert sum(isinstance(item, CaughtUp) for item in scene.handed) == 1


def test_a_durable_one_goes_on_where_it_was_handled() -> None:
    scene = Scene(window=10)
    scene.handle(1)
    scene.write(6)
    scene.handle(4)
    scene.read()
    assert scene.bodies == [4, 5]


def test_another_begins_where_it_is_told_to() -> None:
    scene = Scene(window=10, durable=False)
    scene.write(5)
    scene.read(after=3)
    assert scene.bodies == [3, 4]


def test_who_wants_history_only_is_told_its_end() -> None:
    scene = Scene(window=10, durable=False)
    scene.write(3)
    scene.read(live=False)
    assert [type(item) for item in scene.handed][-2:] == [CaughtUp, Ended]
    scene.write()
    assert scene.bodies == [0, 1, 2]


def test_what_is_not_for_it_is_passed_over() -> None:
    scene = Scene(window=2)
    scene.handle(1)
    scene.hidden = {b"1", b"3"}
    scene.write(6)
    assert scene.bodies == [0, 2]
    scene.handle(2)
    assert scene.bodies == [0, 2, 4, 5]


@given(
    st.lists(st.one_of(st.just("write"), st.integers(1, 5), st.just("crash")), max_size=60), st.integers(1, 6)
)
def test_nothing_is_left_out_or_twice_in_a_life(steps: list[str | int], window: int) -> None:
    scene = Scene(window=window)
    handled = 0
    for step in steps:
        if step == "write":
            scene.write()
        elif step == "crash":
            scene.read()
        elif isinstance(step, int):
            scene.handle(min(step, scene.flying))
        assert scene.flying <= max(window, 1)
        first = scene.bodies[0] if scene.bodies else 0
        assert scene.bodies == list(range(first, first + len(scene.bodies)))
        handled = max(handled, first)
    while scene.flying:
        scene.handle(scene.flying)
    assert not scene.bodies or scene.bodies[-1] == scene.written - 1


def test_before_all_was_read_what_is_written_is_read_from_the_log() -> None:
    """Else it would be handed over before what came before it."""
    scene = Scene(durable=False)
    scene.write()
    scene.handed = []
    scene.reader = LogReader(TOPIC, Window(1, scene.config), None, 0, True, scene.shown)
    scene.write()
    assert scene.bodies == []
    scene.take(scene.reader.pump(scene.store.log))
    assert scene.bodies == [0, 1]


def test_a_log_of_many_pages_is_handed_over_whole() -> None:
    scene = Scene(window=1000)
    for more in (256, 256, 100):
        scene.write(more)
        scene.read()
        assert scene.bodies == list(range(scene.written))


def test_what_is_no_event_comes_in_its_turn_and_moves_no_place_past_an_event() -> None:
    scene = Scene(window=2)
    scene.handle(1)
    scene.write()
    late = Overdue(TOPIC, EventId(b"e" * 32), ())
    scene.take(scene.reader.note(late))
    scene.take(scene.reader.note(late))
    scene.write()
    assert [type(item) for item in scene.handed] == [CaughtUp, Event, Overdue]
    scene.handle(2)
    assert [type(item) for item in scene.handed] == [CaughtUp, Event, Overdue, Overdue, Event]
    scene.handle(1)
    scene.read()
    assert scene.bodies == [1]
