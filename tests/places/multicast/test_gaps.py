"""Ranges of missing numbers against a plain set."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linnet.places.multicast.fragment_repair import Gap, Gaps


def test_a_huge_range_costs_one_entry() -> None:
    gaps = Gaps()
    gaps.open(5, 10**12, 1.0)
    assert gaps.fill(10**6)
    assert list(gaps) == [Gap(5, 10**6 - 1, 1.0), Gap(10**6 + 1, 10**12, 1.0)]
    assert gaps.count == 10**12 - 5
    assert not gaps.fill(10**6)
    gaps.clear()
    assert len(gaps) == 0


def test_numbers_that_are_given_anew_are_forgotten() -> None:
    gaps = Gaps()
    gaps.open(3, 4, 1.0)
    gaps.open(6, 9, 1.0)
    gaps.open(12, 13, 1.0)
    gaps.cut(8)
    assert list(gaps) == [Gap(3, 4, 1.0), Gap(6, 7, 1.0)]


def test_what_is_below_a_number_is_forgotten() -> None:
    gaps = Gaps()
    gaps.open(1, 2, 1.0)
    gaps.open(4, 9, 1.0)
    gaps.open(12, 13, 1.0)
    gaps.begin(7)
    assert list(gaps) == [Gap(7, 9, 1.0), Gap(12, 13, 1.0)]


def test_what_is_missing_for_longer_stays_so() -> None:
    gaps = Gaps()
    gaps.open(3, 4, 1.0)
    gaps.open(1, 6, 2.0)
    assert list(gaps) == [Gap(1, 2, 2.0), Gap(3, 4, 1.0), Gap(5, 6, 2.0)]


STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 30), st.integers(0, 8)), max_size=40)


@given(steps=STEPS)
def test_it_is_the_set_that_it_says(steps: list[tuple[bool, int, int]]) -> None:
    gaps, plain = Gaps(), set[int]()
    for opens, number, more in steps:
        if opens:
            gaps.open(number, number + more, 0.0)
            plain |= set(range(number, number + more + 1))
        else:
            assert gaps.fill(number) == (number in plain)
            plain.discard(number)
    listed = [number for gap in gaps for number in range(gap.first, gap.last + 1)]
    assert listed == sorted(plain)
    assert gaps.count == len(plain)
    assert all((number in gaps) == (number in plain) for number in range(40))
