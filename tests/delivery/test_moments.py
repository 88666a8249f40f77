"""When the events of a chain were said: exact where it can be, and in doubt later."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linnet.delivery.moments import MOST_MOMENTS, Moments


def test_what_was_said_since_a_moment_begins_with_the_first_of_it() -> None:
    moments = Moments()
    assert (moments.since(0.0), moments.at(0)) == (None, None)
    for number, at in ((3, 10.0), (4, 20.0), (7, 30.0)):
        moments.note(number, at)
    assert [moments.since(moment) for moment in (0.0, 10.0, 10.1, 20.0, 30.0, 30.1)] == [3, 3, 4, 4, 7, None]
    assert [moments.at(number) for number in (2, 3, 4, 6, 7, 9)] == [None, 10.0, 20.0, 20.0, 30.0, 30.0]


def test_what_comes_late_takes_its_place_and_what_is_known_stays() -> None:
    moments = Moments()
    moments.note(5, 50.0)
    moments.note(2, 20.0)
    moments.note(5, 99.0)
    assert (moments.since(20.0), moments.since(21.0), moments.at(5)) == (2, 5, 50.0)


def test_what_comes_late_was_said_before_what_follows_it() -> None:
    moments = Moments()
    moments.note(5, 50.0)
    moments.note(2, 99.0)
    assert (moments.at(2), moments.since(51.0)) == (50.0, None)
    moments.note(7, 40.0)
    assert (moments.at(2), moments.at(5), moments.since(41.0)) == (40.0, 40.0, None)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=200), st.integers(0, 1000))
def test_nothing_said_since_is_left_out_and_the_latest_are_exact(steps: list[int], back: int) -> None:
    moments = Moments()
    said: list[float] = []
    for number, step in enumerate(steps):
        said.append((said[-1] if said else 0.0) + step)
        moments.note(number, said[-1])
    moment = max(0.0, said[-1] - back)
    exact = next(number for number, at in enumerate(said) if at >= moment)
    found = moments.since(moment)
    assert found is not None
    assert found <= exact
    if exact >= len(said) - MOST_MOMENTS // 4:
        assert found == exact


def test_it_stays_small() -> None:
    moments = Moments()
    for number in range(10_000):
        moments.note(number, float(number))
    assert len(moments._firsts) <= MOST_MOMENTS
    assert (moments.since(0.0), moments.since(9_999.0)) == (0, 9_999)
