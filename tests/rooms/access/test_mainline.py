from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.ids import EventId
from linnet.rooms.access.mainline import Mainline

# a - b - c - d, with e and f off b, and x alone.
BEFORE = {b"b": b"a", b"c": b"b", b"d": b"c", b"e": b"b", b"f": b"e"}


def before(event: EventId) -> EventId | None:
    found = BEFORE.get(event)
    return None if found is None else EventId(found)


@pytest.mark.parametrize(
    ("power", "position"),
    [(b"d", 0), (b"c", 1), (b"b", 2), (b"a", 3), (b"e", 2), (b"f", 2), (b"x", None), (None, None)],
)
def test_positions_on_the_mainline_of_d(power: bytes | None, position: int | None) -> None:
    event = None if power is None else EventId(power)
    assert Mainline(before).position(event, EventId(b"d")) == position


def test_a_later_power_event_leaves_where_it_left() -> None:
    assert Mainline(before).position(EventId(b"d"), EventId(b"b")) == 0
    assert Mainline(before).position(EventId(b"f"), EventId(b"a")) == 0


def test_without_power_there_is_no_mainline() -> None:
    assert Mainline(before).position(EventId(b"d"), None) is None


@given(st.lists(st.integers(-1, 30), min_size=1, max_size=30), st.data())
def test_it_is_the_first_that_is_met(parents: list[int], data: st.DataObject) -> None:
    """As the specification says it: walk back from the event until a member of the mainline is met."""
    tree = {number: min(parent, number - 1) for number, parent in enumerate(parents)}
    names = {number: EventId(bytes([number])) for number in tree}

    def line(number: int) -> list[int]:
        return [] if number < 0 else [number, *line(tree[number])]

    mainline = Mainline(lambda event: names.get(tree[event[0]]))
    top = data.draw(st.sampled_from(list(tree)))
    for number in data.draw(st.permutations(list(tree))):
        met = [line(top).index(one) for one in line(number) if one in line(top)]
        assert mainline.position(names[number], names[top]) == (met[0] if met else None)


def test_a_long_mainline_is_no_trouble() -> None:
    def one_before(event: EventId) -> EventId | None:
        number = int.from_bytes(event, "big")
        return EventId((number - 1).to_bytes(4, "big")) if number else None

    first, last = EventId(bytes(4)), EventId((50_000).to_bytes(4, "big"))
    assert Mainline(one_before).position(first, last) == 50_000
