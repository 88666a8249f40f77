"""When the events of a chain were said: exact where it can be, and in doubt later."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.ids import PeerId
from linnet.delivery.chain import MOST_ANSWERS, MOST_MOMENTS, SLACK, Moments


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


@pytest.mark.parametrize("heard", [True, False])
def test_it_stays_small(heard: bool) -> None:
    moments = Moments()
    for number in range(10_000):
        moments.note(number, float(number), heard=heard)
    assert len(moments._parts) <= MOST_MOMENTS
    assert (moments.since(0.0), moments.since(9_999.0)) == (0, 9_999)


def test_what_follows_what_was_heard_is_not_older_whatever_is_said_of_it() -> None:
    moments = Moments()
    moments.note(3, 1000.0, heard=True)
    moments.note(6, 1200.0, heard=True)
    moments.note(4, -17_000.0, now=1300.0)
    assert (moments.at(3), moments.at(4), moments.at(6)) == (1000.0, 1200.0, 1200.0)
    moments.note(7, -17_000.0, now=1300.0)
    assert (moments.at(6), moments.at(7)) == (1200.0, 1300.0)
    moments.note(2, -17_000.0, now=1300.0)
    assert moments.at(2) == -17_000.0, "nothing speaks against that"


def test_words_that_differ_by_little_are_no_contradiction() -> None:
    moments = Moments()
    moments.note(3, 1000.0, heard=True)
    moments.note(4, 1000.0 - SLACK, now=1300.0)
    assert moments.at(4) == 1000.0
    moments.note(5, 1000.0 - SLACK - 0.1, now=1300.0)
    assert moments.at(5) == 1300.0


def test_what_follows_what_is_known_is_not_older() -> None:
    moments = Moments()
    moments.not_before(5, 1000.0)
    moments.note(8, 1150.0, now=1300.0)
    moments.note(5, -17_000.0, now=1300.0)
    assert moments.at(5) == 1150.0, "it was said before what follows it"
    moments.note(4, -17_000.0, now=1300.0)
    assert moments.at(4) == -17_000.0


A, B, C = (PeerId(bytes([letter]) * 32) for letter in b"abc")


@pytest.mark.parametrize(
    ("answers", "is_new"),
    [
        ([(A, 0, 5)], True),
        ([(A, 0, 5), (B, 0, 9)], True),  # In doubt it is.
        ([(A, 0, 5), (B, 0, 9), (C, 0, 9)], False),
        ([(A, 0, 5), (B, 0, 9), (C, 7, 7)], True),  # C does not know it.
        ([(A, 0, 5), (B, 0, 9), (C, 0, 9), (C, 0, 6)], True),  # The last word of each counts.
        ([(A, 0, 7)], False),
        ([], False),
    ],
)
def test_what_most_say_was_said_in_our_time_is_not_older(
    answers: list[tuple[PeerId, int, int]], is_new: bool
) -> None:
    moments = Moments()
    for peer, known, first in answers:
        moments.note_answer(peer, known, first, 8, 1000.0)
    moments.note(6, -17_000.0, now=1300.0)
    assert moments.at(6) == (1300.0 if is_new else -17_000.0)


def test_only_so_many_answers_are_remembered() -> None:
    moments = Moments()
    for number in range(2 * MOST_ANSWERS):
        moments.note_answer(PeerId(bytes([number]) * 32), 0, 9 * (number < MOST_ANSWERS), 8, 1000.0)
    assert len(moments._answers) == MOST_ANSWERS
    moments.note(6, -17_000.0, now=1300.0)
    assert moments.at(6) == 1300.0
