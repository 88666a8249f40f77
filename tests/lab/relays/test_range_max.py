"""Greatest values of stretches."""

from __future__ import annotations

import numpy as np

from linnet.lab.relays.range_max import range_max


def test_every_stretch_of_some_arrays() -> None:
    luck = np.random.Generator(np.random.Philox(3))
    for length in (1, 2, 3, 7, 8, 9, 40, 130):
        values = luck.integers(-50, 50, length)
        low, high = np.triu_indices(length)
        high = high + 1
        expected = [int(values[a:b].max()) for a, b in zip(low, high, strict=True)]
        assert range_max(values, low, high).tolist() == expected


def test_nothing_asked() -> None:
    assert range_max(np.array([1, 2]), np.array([], np.int64), np.array([], np.int64)).tolist() == []
