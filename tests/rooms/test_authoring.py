"""Events of our own: where they stand."""

from __future__ import annotations

import pytest
from tests.rooms.bench import Bench

from linnet.core.errors import Refused
from linnet.core.ids import EventId, TopicId
from linnet.core.limits import BODY_BYTES, DEPENDENCIES, KEY_CHARS, KIND_CHARS
from linnet.core.reasons import Reason
from linnet.event.event import Verified
from linnet.rooms.authoring import NO_TOPIC, causes_of, check_limits, found, refs_of
from linnet.rooms.commands import SendToRoom
from linnet.rooms.content import CREATE, ROOM_VERSION, Create


def test_a_room_is_founded_by_an_event_after_nothing() -> None:
    bench = Bench()
    create = found(bench.room.context, Create(ROOM_VERSION, (), bytes(16)), bench.now).events[0]
    assert (create.topic, create.seq, create.prev, create.kind) == (NO_TOPIC, 0, None, CREATE)
    assert refs_of(create) == ()
    assert create.tail.height == 0
    assert found(bench.room.context, Create(ROOM_VERSION, (), b"x" * 16), bench.now).head != create.id


def test_an_event_comes_after_all_that_is_known_and_shown() -> None:
    bench = Bench()
    bench.join("bob", "cid")
    heads, control = bench.room.dag.heads, bench.room.control.heads
    beside = [bench.forge(name, deps=heads, control=control) for name in ("bob", "cid")]
    bench.bring("bob", *beside)
    author = bench.room.parts.author
    event = author.make("message", None, b"x", bench.now).events[0]
    assert event.tail.deps == bench.room.dag.heads
    assert set(event.tail.deps or ()) >= {each.head for each in beside}
    assert event.tail.control == control
    assert event.tail.concurrent is None
    assert (event.seq, event.prev) == (author.seq + 1, author.prev)
    assert event.tail.height == 1 + max(map(bench.room.intake.claimed, refs_of(event)))
    assert event.topic == bench.id


def test_making_is_not_saying() -> None:
    bench = Bench()
    author = bench.room.parts.author
    before = (author.seq, author.prev)
    first = author.make("message", None, b"x", bench.now)
    assert (author.seq, author.prev) == before
    author.saw(first.events[0])
    assert (author.seq, author.prev) == (before[0] + 1, first.head)
    author.saw(bench.forge("bob").events[0])
    assert author.prev == first.head  # others' chains are theirs


def test_heads_that_have_no_room_as_dependencies_are_named_beside() -> None:
    bench = Bench()
    bench.join("bob")
    heads, control = bench.room.dag.heads, bench.room.control.heads
    beside: list[Verified] = []
    for _ in range(DEPENDENCIES + 8):
        bench._chains.pop("bob", None)  # each as if it were the first of its device
        beside.append(bench.forge("bob", body=len(beside).to_bytes(2), deps=heads, control=control))
    bench.bring("bob", *beside)
    event = bench.room.parts.author.make("message", None, b"x", bench.now).events[0]
    assert len(event.tail.deps or ()) == DEPENDENCIES
    assert len(event.tail.concurrent or ()) == len(bench.room.dag.heads) - DEPENDENCIES
    assert set(causes_of(event)) >= set(bench.room.dag.heads)


def test_the_chain_goes_on_after_a_restart() -> None:
    bench = Bench()
    (last,) = bench.say(SendToRoom(bench.id, (b"one",)))
    seq = bench.room.parts.author.seq
    bench.restart()
    assert (bench.room.parts.author.seq, bench.room.parts.author.prev) == (seq, last)


@pytest.mark.parametrize(
    ("kind", "key", "size", "reason"),
    [
        ("", None, 0, Reason.MALFORMED),
        ("k" * (KIND_CHARS + 1), None, 0, Reason.MALFORMED),
        ("k", "x" * (KEY_CHARS + 1), 0, Reason.TOO_LARGE),
        ("k", None, BODY_BYTES + 1, Reason.TOO_LARGE),
    ],
)
def test_limits(kind: str, key: str | None, size: int, reason: Reason) -> None:
    bench = Bench()
    with pytest.raises(Refused) as error:
        check_limits(kind, key, bytes(size))
    assert error.value.reason is reason
    with pytest.raises(Refused) as error:
        bench.room.parts.author.make(kind, key, bytes(size), bench.now)
    assert error.value.reason is reason


def test_what_fits_exactly_is_good() -> None:
    check_limits("k" * KIND_CHARS, "x" * KEY_CHARS, bytes(BODY_BYTES))


def test_references_are_each_named_once_and_control_heads_are_no_causes() -> None:
    bench = Bench()
    a, b, c = (EventId(bytes([number]) * 32) for number in (1, 2, 3))
    event = bench.forge("bob", deps=(a, b, a), concurrent=(b,), control=(c, a), height=1).events[0]
    assert refs_of(event) == (a, b, c)
    assert causes_of(event) == (a, b)
    assert TopicId(bytes(32)) == NO_TOPIC
