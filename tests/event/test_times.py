"""Which claimed times are doubtful, and when our clock is the one that is wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.delivery.voices import Voice

from linnet.event.event import Verified
from linnet.event.signing import message_tail
from linnet.event.times import CLOCKS_APART, clock_behind, doubt_unit, is_ahead, is_before

NOW = 1_800_000_000.0


def unit(*times: int) -> Verified:
    return Voice("ann").sign([message_tail(b"x", time) for time in times])


def test_a_time_is_doubtful_past_what_clocks_may_differ() -> None:
    edge = int((NOW + CLOCKS_APART) * 1000)
    assert [is_ahead(time, NOW) for time in (0, edge, edge + 1, 2**63 - 1)] == [False, False, True, True]
    edge = int((NOW - CLOCKS_APART) * 1000)
    assert [is_before(time, int(NOW * 1000)) for time in (edge, edge - 1)] == [False, True]


def test_in_a_burst_each_event_has_its_own_mark_and_keeps_its_id() -> None:
    said = unit(int(NOW * 1000), 2**63 - 1, 0)
    marked = doubt_unit(said, NOW)
    assert [event.doubtful for event in marked.events] == [False, True, False]
    assert [event.id for event in marked.events] == [event.id for event in said.events]
    assert marked.unit is said.unit


def test_a_unit_without_doubt_is_not_copied() -> None:
    said = unit(int(NOW * 1000), 0)
    assert doubt_unit(said, NOW) is said


@pytest.mark.parametrize(
    ("ahead", "behind"),
    [
        ((), 0.0),
        ((9000.0, 9000.0), 0.0),  # Two are too few to overrule us.
        ((9000.0, 9001.0, 9002.0), 9001.0),
        ((9000.0, 0.0, 9001.0), 9000.0),
        ((9000.0, 0.0, 1.0), 0.0),
        ((9000.0, 0.0, 1.0, 9000.0), 0.0),  # Half of them do not either.
        ((200.0, 250.0, 299.0), 0.0),
        ((-9000.0, -9001.0, -9002.0), 0.0),  # Ours is ahead: then nothing is doubted for it.
    ],
)
def test_most_peers_tell_that_our_clock_is_behind(ahead: tuple[float, ...], behind: float) -> None:
    assert clock_behind(ahead) == behind


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=9), st.data())
def test_as_many_liars_as_honest_peers_move_nothing(honest: list[float], data: st.DataObject) -> None:
    lies = data.draw(st.lists(st.floats(-1e9, 1e9), max_size=len(honest)))
    assert clock_behind((*honest, *lies)) == 0.0
