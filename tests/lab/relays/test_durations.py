"""Counting durations by bins."""

from __future__ import annotations

import numpy as np

from linnet.lab.bins import NEVER, count_bins
from linnet.lab.relays.durations import histogram


def test_histograms_count_zeros_and_what_never_came() -> None:
    since = np.array([5, 5, 5, 5, 5])
    counts = histogram(since, np.array([5, 5, -1, 8, 2_005]))
    assert counts == count_bins(np.array([0, 0, -1, 3, 2_000]))
    assert list(counts) == sorted(counts)
    assert counts[NEVER] == 1
    assert histogram(since[:0], since[:0]) == {}
    assert histogram(since[:2], np.array([-1, -1])) == {NEVER: 2}


def test_bins_are_those_of_the_lab() -> None:
    near = np.array([2**power + offset for power in range(52) for offset in (-1, 0, 1)])
    luck = np.random.Generator(np.random.Philox(1))
    spread = (2.0 ** luck.uniform(0, 52, 5_000)).astype(np.int64)
    durations = np.concatenate((np.arange(5_000), near, spread))
    for one in (durations, durations[:3], durations[-1:]):
        assert histogram(np.full(len(one), 7), one + 7) == count_bins(one)
