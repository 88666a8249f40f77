"""Events of our own: where they stand in the DAG, what is signed, what is refused."""

from __future__ import annotations

from random import Random

import pytest
from tests.rooms.chronicle import Chronicle

from linnet.core.errors import Refused
from linnet.core.ids import EventId
from linnet.core.limits import BODY_BYTES, DEPENDENCIES, KEY_CHARS, KIND_CHARS, LARGEST_COUNT
from linnet.core.reasons import Reason
from linnet.delivery.causal_graph import Dag
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.context import Context
from linnet.event.event import Event
from linnet.event.signing import verify_unit
from linnet.rooms.auth.control_graph import ControlDag
from linnet.rooms.event_positions import NO_TOPIC, Author, Draft, causes_of, check_limits, found, refs_of
from linnet.rooms.event_types import (
    CREATE,
    MEMBER,
    ROOM_VERSION,
    Create,
    Member,
    Membership,
    body_of,
    member_key,
)
from linnet.store.memory import MemoryStore
from linnet.testing.identities import known_identity

ANN = known_identity("ann")
NOW = 1_700_000_000.5


def ids(count: int) -> tuple[EventId, ...]:
    return tuple(EventId(number.to_bytes(32, "big")) for number in range(1, count + 1))


class Desk:
    """Ann, who has founded a room and is about to write."""

    def __init__(self) -> None:
        config = DeliveryConfig()
        self.context = Context(ANN.device, ANN.card, MemoryStore(), config, Random(1), verify_unit)
        self.create = found(self.context, Create(ROOM_VERSION, (), bytes(16)), NOW)
        self.control = ControlDag(self.create.events[0])
        self.dag = Dag()
        self.author = Author(self.context, self.control, self.dag, self.dag.height)

    def place(self, event: Event) -> None:
        """Put an event into the DAG and remember that it is there."""
        self.dag.add(event.id, event.tail.height or 0, refs_of(event), True)
        self.author.note(event)

    def spread(self, count: int) -> tuple[EventId, ...]:
        """So many events of others beside each other, the first the highest."""
        for number, id in enumerate(ids(count)):
            self.dag.add(id, 1000 - number, (self.create.head,), True)
        return ids(count)

    def make(self, body: bytes = b"hello") -> Event:
        return self.author.make(Draft("message", None, body), NOW).events[0]


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    desk.place(desk.create.events[0])
    return desk


# Where an event stands.


def test_a_room_begins_with_an_event_that_comes_after_nothing(desk: Desk) -> None:
    create = desk.create.events[0]
    tail = create.tail
    assert (create.topic, create.seq, create.prev, create.kind) == (NO_TOPIC, 0, None, CREATE)
    assert (tail.deps, tail.concurrent, tail.control, tail.height) == (None, None, None, 0)
    assert tail.time == int(NOW * 1000)
    verify_unit(desk.create.unit, ANN.card)


def test_an_event_comes_after_all_that_is_known(desk: Desk) -> None:
    event = desk.make()
    verify_unit(desk.author.make(Draft("message", None, b"hello"), NOW).unit, ANN.card)
    assert (event.topic, event.seq, event.prev) == (desk.control.room, 1, desk.create.head)
    tail = event.tail
    assert (tail.deps, tail.concurrent, tail.control) == (desk.dag.heads, None, desk.control.heads)
    assert (tail.height, tail.time, tail.body) == (1, int(NOW * 1000), b"hello")


def test_what_was_made_counts_only_once_it_was_seen(desk: Desk) -> None:
    """It may turn out that it is not allowed; then the next stands in its place."""
    first, again = desk.make(b"1"), desk.make(b"2")
    assert (first.seq, first.prev) == (again.seq, again.prev)
    desk.place(again)
    after = desk.make(b"3")
    assert (after.seq, after.prev, after.tail.deps) == (2, again.id, (again.id,))
    assert after.tail.height == 2


def test_what_others_wrote_is_no_part_of_our_chain(desk: Desk) -> None:
    others = Chronicle("bob")
    later = others.sign("bob", "message", None, b"x", (others.create,))
    desk.author.note(later)
    assert (desk.author.seq, desk.author.prev) == (0, desk.create.head)


def test_an_older_event_of_ours_does_not_set_the_chain_back(desk: Desk) -> None:
    first = desk.make()
    desk.place(first)
    second = desk.make()
    desk.place(second)
    desk.author.note(first)
    assert (desk.author.seq, desk.author.prev) == (2, second.id)


def test_control_events_are_named_even_where_others_came_after(desk: Desk) -> None:
    body = body_of(Member(Membership.JOIN))
    join = desk.author.make(Draft(MEMBER, member_key(ANN.author), body), NOW).events[0]
    assert desk.control.add(join) is None
    desk.place(join)
    desk.place(desk.make())
    event = desk.make()
    assert event.tail.control == (join.id,)
    assert event.tail.deps != (join.id,)


# Limits.


@pytest.mark.parametrize(
    ("heads", "deps", "beside"),
    [
        (DEPENDENCIES, DEPENDENCIES, 0),
        (DEPENDENCIES + 1, DEPENDENCIES, 1),
        (2 * DEPENDENCIES + 5, DEPENDENCIES, DEPENDENCIES),
    ],
)
def test_more_heads_than_fit_are_named_beside_and_the_lowest_not_at_all(
    desk: Desk, heads: int, deps: int, beside: int
) -> None:
    known = desk.spread(heads)
    tail = desk.make().tail
    assert tail.deps == known[:deps]
    assert tail.concurrent == (known[deps : deps + beside] or None)
    assert tail.height == 1001


def test_the_height_has_an_end(desk: Desk) -> None:
    """Someone may claim the largest there is, and be followed all the same."""
    (top,) = ids(1)
    desk.dag.add(top, LARGEST_COUNT, (desk.create.head,), True)
    assert desk.make().tail.height == LARGEST_COUNT


def test_without_a_head_it_follows_our_last_or_what_rules() -> None:
    """Nothing is shown yet, while control events are known: so it is for whoever has just come."""
    desk = Desk()
    desk.dag.add(desk.create.head, 0, (), False)
    assert desk.make().tail.deps == (desk.create.head,) == desk.control.heads
    mine = desk.make()
    desk.dag.add(mine.id, 1, refs_of(mine), False)
    desk.author.note(mine)
    assert desk.make().tail.deps == (mine.id,)


def test_the_largest_event_is_one(desk: Desk) -> None:
    made = desk.author.make(Draft("k" * KIND_CHARS, "y" * KEY_CHARS, bytes(BODY_BYTES)), NOW)
    verify_unit(made.unit, ANN.card)


@pytest.mark.parametrize(
    ("kind", "key", "size", "reason"),
    [
        ("", None, 0, Reason.MALFORMED),
        ("k" * (KIND_CHARS + 1), None, 0, Reason.MALFORMED),
        ("name", "y" * (KEY_CHARS + 1), 0, Reason.TOO_LARGE),
        ("message", None, BODY_BYTES + 1, Reason.TOO_LARGE),
    ],
)
def test_what_nobody_would_take_is_not_made(
    desk: Desk, kind: str, key: str | None, size: int, reason: Reason
) -> None:
    with pytest.raises(Refused) as checked:
        check_limits(kind, key, bytes(size))
    with pytest.raises(Refused) as made:
        desk.author.make(Draft(kind, key, bytes(size)), NOW)
    assert checked.value.reason is made.value.reason is reason
    assert desk.author.seq == 0


# What an event refers to.


def test_references_are_named_once_and_causes_are_all_but_control_heads() -> None:
    history = Chronicle("ann")
    one, two, last = (history.sign("ann", "message", None, b"x", (history.create,)) for _ in range(3))
    event = history.sign("ann", "message", None, b"x", (history.create, one), deps=(two, last))
    assert event.prev == last.id
    assert refs_of(event) == (two.id, last.id, history.create.id, one.id)
    assert causes_of(event) == (two.id, last.id)
    assert refs_of(history.create) == causes_of(history.create) == ()


def test_what_is_beside_an_event_is_a_cause_as_well(desk: Desk) -> None:
    known = desk.spread(DEPENDENCIES + 3)
    event = desk.make()
    assert causes_of(event) == (*known, desk.create.head)
    assert refs_of(event) == (*known, desk.create.head)
