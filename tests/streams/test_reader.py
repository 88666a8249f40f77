"""One subscription: what of a unit it is shown, and how the log, history and live events meet in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from tests.delivery.voices import TOPIC, Voice
from tests.streams.stage import NOW, context_of

from linnet.core.effects import Deliver
from linnet.core.ids import AuthorId
from linnet.core.reasons import Reason
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.event_archive import Archive
from linnet.delivery.items import CaughtUp, Missed
from linnet.delivery.subscriptions import Cursor, Window
from linnet.event.event import Tail, Verified
from linnet.event.signing import message_tail
from linnet.machine.outbox import Outbox, Promises
from linnet.store.memory import MemoryStore
from linnet.streams.commands import Policy, Subscribe
from linnet.streams.ingest import Governance
from linnet.streams.subscribe import Reader, delivery_records, is_for_nodes, shown
from linnet.trace.records import Kind, Record

ANN = Voice("ann").identity.author
POLICY_TAIL: Tail = Governance(TOPIC, None, MemoryStore().cells).tail(Policy(), 0)


def mixed(voice: Voice) -> Verified:
    """A burst with policies at its beginning, in its middle and at its end."""
    said = [message_tail(body, 0) for body in (b"a", b"b", b"c")]
    return voice.sign([POLICY_TAIL, said[0], POLICY_TAIL, said[1], said[2], POLICY_TAIL])


def test_the_owners_policies_are_left_out_wherever_they_are_in_a_unit() -> None:
    assert [event.body for event in shown(mixed(Voice("ann")), ANN)] == [b"a", b"b", b"c"]
    assert shown(Voice("ann").sign([POLICY_TAIL]), ANN) == ()


@pytest.mark.parametrize("owner", [None, Voice("ben").identity.author])
def test_from_anyone_else_nothing_is_left_out(owner: AuthorId | None) -> None:
    unit = mixed(Voice("ann"))
    assert shown(unit, owner) == unit.events
    assert not any(is_for_nodes(event, owner) for event in unit.events)


def handed(act: Callable[..., object], /, *args: object) -> list[Any]:
    """What a subscription is handed."""
    promises = Promises()
    act(*args, promises)
    return [*promises]


class Desk:
    """A log, and a durable subscription of it."""

    def __init__(self, window_items: int = 100, owner: AuthorId | None = None) -> None:
        self.store = MemoryStore()
        self.config = DeliveryConfig(window_items=window_items, buffer_items=window_items)
        self.owner = owner
        context = context_of(store=self.store)
        self.archive = Archive(TOPIC, self.store, context.cards, self.config, Outbox())
        self.ann = Voice("ann")
        context.cards.learn(self.ann.identity.card)

    def reader(self) -> Reader:
        cursor = Cursor(TOPIC, "mine", self.store.cells)
        if not cursor.resumed:
            cursor.begin(0)
        command = Subscribe(1, "tea", name="mine")
        return Reader(TOPIC, command, Window(1, self.config), cursor, self.owner)

    def read(self, reader: Reader) -> list[Any]:
        """What the log holds for a subscription."""
        return handed(reader.hand_log, self.store.log)

    def consume(self, reader: Reader, items: int) -> list[Any]:
        return handed(reader.handle_consumed, items, self.store.log)

    def write(self, reader: Reader, unit: Verified) -> list[Any]:
        return handed(reader.hand_written, self.keep(unit), reader.visible_events(unit))

    def keep(self, unit: Verified) -> int:
        position = self.archive.keep(unit, NOW)
        assert position is not None
        return position


def bodies(effects: Iterable[object]) -> list[bytes]:
    handed = (effect for effect in effects if isinstance(effect, Deliver))
    return [getattr(item, "body", b"") for effect in handed for item in effect.items]


def test_a_durable_subscription_counts_what_it_was_shown_and_resumes_there() -> None:
    desk = Desk(owner=ANN)
    desk.keep(mixed(desk.ann))
    desk.keep(desk.ann.say(b"d"))
    first = desk.reader()
    assert bodies(desk.read(first)) == [b"a", b"b", b"c", b"d"]
    desk.consume(first, 2)
    assert bodies(desk.read(desk.reader())) == [b"c", b"d"]


def test_it_stays_behind_until_the_log_was_read_to_its_end() -> None:
    desk = Desk(window_items=2)
    reader = desk.reader()
    assert desk.read(reader) == []
    assert not reader.behind
    units = desk.ann.units(4)
    got = [item for unit in units[:3] for item in bodies(desk.write(reader, unit))]
    assert got == [b"0", b"1"]
    assert reader.behind
    assert desk.write(reader, units[3]) == [], "what was passed over comes first"
    more = desk.consume(reader, 2)
    third, fourth = units[2:]
    assert more == [
        Deliver(1, third.events),
        delivered_record(third),
        Deliver(1, fourth.events),
        delivered_record(fourth),
    ]
    assert not reader.behind


def test_a_long_log_is_read_page_by_page() -> None:
    desk = Desk(window_items=1000)
    for unit in desk.ann.units(600):
        desk.keep(unit)
    assert bodies(desk.read(desk.reader())) == [b"%d" % number for number in range(600)]


def delivered_record(unit: Verified) -> Record:
    return Record(Kind.DELIVERED, TOPIC, unit.head, unit.unit.device, unit.unit.seq, len(unit.events))


def test_what_is_handed_over_later_is_recorded_in_as_few_records_as_there_are_runs() -> None:
    ann, ben = Voice("ann"), Voice("ben")
    burst, other, single = ann.say(b"0", b"1", b"2"), ben.say(b"x"), ann.say(b"3")
    assert delivery_records([*burst.events, *other.events, *single.events]) == [
        delivered_record(burst),
        delivered_record(other),
        delivered_record(single),
    ]
    both = delivery_records([*burst.events[1:], *single.events])
    assert [(record.seq, record.events, record.event) for record in both] == [(1, 3, single.head)]
    assert delivery_records([]) == []


def live() -> Reader:
    return Reader(TOPIC, Subscribe(1, "tea"), Window(1, DeliveryConfig()), None, None)


def test_below_a_floor_nothing_is_handed_over_again() -> None:
    reader, ann = live(), Voice("ann")
    reader.floors[ann.key] = 2
    assert bodies(handed(reader.offer, ann.say(b"0", b"1", b"2", b"3"))) == [b"2", b"3"]
    assert bodies(handed(reader.offer, ann.say(b"4"))) == [b"4"]
    ben = Voice("ben")
    assert bodies(handed(reader.offer, ben.say(b"other"))) == [b"other"], "a floor is of one chain"


def test_what_was_missed_below_a_floor_was_had() -> None:
    reader, ann = live(), Voice("ann")
    reader.floors[ann.key] = 5
    identity = ann.identity
    gaps = [
        Missed(TOPIC, identity.author, identity.card.device, first, first + 1, Reason.GAP_UNFILLED)
        for first in (3, 4)
    ]
    assert handed(reader.tell_missed, gaps[0]) == []
    assert handed(reader.tell_missed, gaps[1]) == [Deliver(1, (gaps[1],))]


def test_a_live_subscription_has_no_log() -> None:
    reader, desk = live(), Desk()
    desk.keep(desk.ann.say())
    assert desk.read(reader) == []
    note = CaughtUp(None, False, None)
    assert handed(reader.tell, note) == [Deliver(1, (note,))]
