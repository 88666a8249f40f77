"""Subscriptions of one stream: live, ordered or not, and durable over the log."""

from __future__ import annotations

from typing import Any

from tests.delivery.voices import TOPIC, Voice, asked, items_of
from tests.streams.stage import NOW, context_of
from tests.streams.village import Village

from linnet.core.effects import AfterCommit, Deliver
from linnet.core.ids import AuthorId
from linnet.core.reasons import Reason
from linnet.delivery.commands import Consumed
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.event_archive import Archive
from linnet.delivery.items import CaughtUp, Ended, Missed
from linnet.delivery.subscriptions import Cursor
from linnet.event.event import Verified
from linnet.event.signing import message_tail
from linnet.identity.text import Sort, to_text
from linnet.machine.outbox import Outbox, Promises
from linnet.store.memory import MemoryStore
from linnet.streams.commands import Declare, Policy, Published, Subscribe
from linnet.streams.config import StorageRule
from linnet.streams.ingest import Governance
from linnet.streams.subscribe import Readers
from linnet.trace.records import Kind, Record


class Scene:
    def __init__(
        self,
        config: DeliveryConfig | None = None,
        store: MemoryStore | None = None,
        owner: AuthorId | None = None,
    ) -> None:
        self.store = store or MemoryStore()
        self.context = context_of(config=config, store=self.store)
        self.out = Outbox()
        self.readers = Readers(TOPIC, self.context, self.out, owner)
        cards, kept = self.context.cards, self.context.config
        self.archive = Archive(TOPIC, self.store, cards, kept, self.out)
        self.ann = Voice()
        self.context.cards.learn(self.ann.identity.card)

    def live(self, number: int, ordered: bool = True) -> None:
        reader = self.readers.add(Subscribe(number, "tea", ordered=ordered), None)
        assert asked(self.out, self.readers.begin, reader) == []

    def ordered(self, unit: Verified, hops: int) -> list[Any]:
        return asked(self.out, self.readers.hand, self.readers.ordered, unit, hops, NOW)

    def unordered(self, unit: Verified, hops: int) -> list[Any]:
        return asked(self.out, self.readers.hand, self.readers.unordered, unit, hops, NOW)

    def durable(self, number: int) -> list[Any]:
        cursor = Cursor(TOPIC, "mine", self.store.cells)
        if not cursor.resumed:
            cursor.begin(0)
        return asked(
            self.out, self.readers.begin, self.readers.add(Subscribe(number, "tea", name="mine"), cursor)
        )

    def log(self, unit: Verified) -> list[Any]:
        position = self.archive.keep(unit, NOW)
        assert position is not None
        return self.written(position, unit, 1)

    def written(self, position: int, unit: Verified, hops: int) -> list[Any]:
        promises = Promises()
        self.readers.hand_written(position, unit, hops, promises)
        return [*promises]

    def own(self, unit: Verified) -> list[Any]:
        promises = Promises()
        self.readers.hand_own(unit, None, promises)
        return [*promises]

    def position(self) -> int:
        position: int = Cursor(TOPIC, "mine", self.store.cells).position
        return position

    def gap(self, first: int, last: int) -> Missed:
        identity = self.ann.identity
        return Missed(TOPIC, identity.author, identity.card.device, first, last, Reason.GAP_UNFILLED)


def test_each_gets_what_it_asked_for_and_there_is_a_record() -> None:
    scene = Scene()
    scene.live(1, ordered=True)
    scene.live(2, ordered=False)
    unit = scene.ann.say(b"a", b"b")
    record = Record(Kind.DELIVERED, TOPIC, unit.head, unit.unit.device, 0, 2, hops=3)
    assert scene.unordered(unit, 3) == [Deliver(2, unit.events), record]
    assert scene.ordered(unit, 3) == [Deliver(1, unit.events), record]
    assert scene.written(1, unit, 3) == []
    assert len(scene.readers) == 2
    assert 1 in scene.readers
    assert 3 not in scene.readers
    assert not scene.readers.durable


def test_our_own_events_go_to_all() -> None:
    scene = Scene()
    scene.live(1)
    scene.live(2, ordered=False)
    unit = scene.ann.say(b"a")
    assert items_of(scene.own(unit)) == [*unit.events, *unit.events]


def test_the_owners_policies_are_not_shown_and_not_counted() -> None:
    ann = Voice()
    scene = Scene(owner=ann.identity.author)
    scene.live(1)
    tail = Governance(TOPIC, None, scene.store.cells).tail(Policy(), 0)
    assert scene.ordered(ann.sign([tail]), 1) == []
    burst = ann.sign([message_tail(b"a", 0), tail, message_tail(b"b", 0)])
    record = Record(Kind.DELIVERED, TOPIC, burst.head, burst.unit.device, 1, 2, hops=1)
    assert scene.ordered(burst, 1) == [Deliver(1, (burst.events[0], burst.events[2])), record]


def test_a_slow_reader_ends_once_with_one_record() -> None:
    scene = Scene(DeliveryConfig(window_items=1, buffer_items=1))
    scene.live(1)
    units = scene.ann.units(4)
    scene.ordered(units[0], 1)
    scene.ordered(units[1], 1)
    effects = scene.ordered(units[2], 1)
    assert effects[:2] == [
        Deliver(1, (Ended(Reason.SUBSCRIBER_SLOW),)),
        Record(Kind.DROPPED, TOPIC, reason=Reason.SUBSCRIBER_SLOW),
    ]
    assert scene.ordered(units[3], 1) == []


def test_a_reader_that_is_too_slow_for_our_own_events_ends_with_a_record_too() -> None:
    scene = Scene(DeliveryConfig(window_items=1, buffer_items=1))
    scene.live(1)
    effects = [effect for unit in scene.ann.units(3) for effect in scene.own(unit)]
    assert Record(Kind.DROPPED, TOPIC, reason=Reason.SUBSCRIBER_SLOW) in effects


def test_a_durable_reader_gets_the_log_from_its_cursor_on() -> None:
    scene = Scene()
    one, two = scene.ann.units(2)
    scene.archive.keep(one, NOW)
    unit = one.unit
    record = Record(Kind.DELIVERED, unit.topic, one.head, unit.device, unit.seq)
    assert scene.durable(1) == [AfterCommit((Deliver(1, one.events), record))]
    assert items_of(scene.log(two)) == list(two.events)
    assert scene.readers.durable
    assert scene.readers.is_named("mine")
    scene.readers.handle_consumed(1, 1)
    assert scene.position() == 1
    again = Scene(store=scene.store)
    assert items_of(again.durable(5)) == list(two.events), "what was not handled comes again"


def test_a_durable_reader_waits_in_the_log_when_its_window_is_full() -> None:
    scene = Scene(DeliveryConfig(window_items=2, buffer_items=2))
    scene.durable(1)
    units = scene.ann.units(6)
    got = [item for unit in units for item in items_of(scene.log(unit))]
    assert got == [event for unit in units[:2] for event in unit.events]
    for handled in range(4):
        got += items_of(asked(scene.out, scene.readers.handle_consumed, 1, 1))
        assert scene.position() == handled + 1
    assert got == [event for unit in units for event in unit.events]


def test_a_burst_larger_than_the_window_does_not_stall_a_durable_reader() -> None:
    scene = Scene(DeliveryConfig(window_items=2, buffer_items=10))
    scene.durable(1)
    unit = scene.ann.say(b"a", b"b", b"c", b"d", b"e")
    got = items_of(scene.log(unit))
    while len(got) < 5:
        more = items_of(asked(scene.out, scene.readers.handle_consumed, 1, 1))
        assert more
        got += more
    assert got == list(unit.events)


def test_a_note_is_counted_by_the_cursor_as_the_application_counts_it() -> None:
    """Otherwise handling the note would pass over an event that was not handled."""
    scene = Scene()
    scene.durable(1)
    one, two = scene.ann.units(2)
    scene.log(one)
    assert asked(scene.out, scene.readers.note_anchored) == [
        AfterCommit((Deliver(1, (CaughtUp(NOW, False, None),)),))
    ]
    scene.log(two)
    scene.readers.handle_consumed(1, 2)
    assert scene.position() == 1
    scene.readers.tell_missed(scene.gap(2, 2))
    scene.readers.handle_consumed(1, 1)
    assert scene.position() == 2
    scene.readers.handle_consumed(1, 1)
    assert scene.position() == 2


def test_what_was_missed_is_told_in_the_order_of_the_log() -> None:
    scene = Scene()
    scene.durable(1)
    scene.live(2)
    gap = scene.gap(3, 4)
    assert asked(scene.out, scene.readers.tell_missed, gap) == [
        AfterCommit((Deliver(1, (gap,)),)),
        Deliver(2, (gap,)),
    ]


def test_what_a_reader_had_is_neither_shown_again_nor_missed() -> None:
    scene = Scene()
    scene.live(1)
    scene.readers.go_back({scene.ann.key: 3})
    burst, rest = scene.ann.say(b"0", b"1"), scene.ann.say(b"2", b"3")
    assert items_of(scene.ordered(burst, 1)) == []
    assert items_of(scene.ordered(rest, 1)) == [rest.events[1]]
    assert asked(scene.out, scene.readers.tell_missed, scene.gap(1, 2)) == []
    assert items_of(asked(scene.out, scene.readers.tell_missed, scene.gap(5, 6))) == [scene.gap(5, 6)]


def test_removing_ends_and_a_durable_one_keeps_its_place() -> None:
    scene = Scene()
    scene.live(1)
    assert asked(scene.out, scene.readers.remove, 1) == [Deliver(1, (Ended(None),))]
    assert asked(scene.out, scene.readers.remove, 1) == []
    scene.durable(2)
    scene.log(scene.ann.say())
    scene.readers.handle_consumed(2, 1)
    assert asked(scene.out, scene.readers.remove, 2) == [AfterCommit((Deliver(2, (Ended(None),)),))]
    assert scene.position() == 1
    assert asked(scene.out, scene.readers.handle_consumed, 2, 1) == []


def test_the_owners_policy_is_no_part_of_history() -> None:
    news = f"{to_text(Sort.PERSON, Village(peers=4).identity['p0'].author)}/news"
    village = Village(peers=4, rules=(StorageRule(news),))
    live = village.subscribe("p1", news)
    village.run(5)
    assert isinstance(village.ask("p0", Declare(news, Policy(publishers=()))), Published)
    village.publish("p0", b"first", stream=news)
    village.run(3)
    late = village.subscribe("p2", news, since=0.0, live=False)
    village.run(5)
    assert village.bodies("p1", live) == [b"first"]
    assert village.bodies("p2", late) == [b"first"]


def test_a_durable_subscription_resumes_within_a_burst() -> None:
    village = Village(peers=4, autoconsume=False)
    first = village.subscribe("p1", name="mine")
    village.run(5)
    village.publish("p0", b"one", b"two", b"three")
    village.run(2)
    assert village.bodies("p1", first) == [b"one", b"two", b"three"]
    handled = village.items["p1", first].index(
        next(item for item in village.items["p1", first] if getattr(item, "body", b"") == b"two")
    )
    village.ask("p1", Consumed(first, handled + 1))
    village.crash("p1")
    village.restart("p1")
    again = village.subscribe("p1", name="mine")
    village.run(10)
    assert village.bodies("p1", again) == [b"three"]
