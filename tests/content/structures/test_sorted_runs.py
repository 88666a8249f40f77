"""Pairs in order, in short runs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linnet.content.structures.interval_tree import SortedRuns

PAIRS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), max_size=60)


@given(PAIRS, PAIRS)
@settings(max_examples=200)
def test_what_was_put_in_is_found_until_it_is_taken_out(
    added: list[tuple[int, int]], taken: list[tuple[int, int]]
) -> None:
    runs, kept = SortedRuns(run=4), set[tuple[int, int]]()
    for pair in added:
        if pair not in kept:
            runs.add(*pair)
            kept.add(pair)
    for pair in taken:
        if pair in kept:
            runs.remove(*pair)
            kept.discard(pair)
        else:
            with pytest.raises(KeyError):
                runs.remove(*pair)
    assert len(runs) == len(kept)
    for key in range(-1, 8):
        assert sorted(runs.up_to(key)) == sorted(handle for first, handle in kept if first <= key)
        assert 0 <= runs.about(key) <= len(kept)


def test_the_estimate_is_near() -> None:
    runs = SortedRuns()
    for number in range(10_000):
        runs.add(number * 7919 % 10_000, number)
    for key in (0, 100, 5_000, 9_999):
        assert abs(runs.about(key) - (key + 1)) <= 2_048
    assert runs.about(-1) == 0
