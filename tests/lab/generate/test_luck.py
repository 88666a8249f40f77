"""Bits are the same everywhere: these were written down once."""

from __future__ import annotations

import numpy as np
import pytest

from linnet.lab.generate.luck import Luck


def test_bits_are_by_seed_and_number() -> None:
    assert Luck(1, 2).words(2).tolist() == FIRST
    assert Luck(1, 2).halves(3).tolist() == [FIRST[0] >> shift & 0xFFFF for shift in (0, 16, 32)]
    drawn = {tuple(Luck(seed, number).words(2).tolist()) for seed in range(3) for number in range(3)}
    assert len(drawn) == 9


FIRST = [5527141919257688469, 1364028082176693913]


def test_bits_go_on() -> None:
    luck = Luck(5, 1)
    first, second = luck.halves(5), luck.halves(4)
    words = Luck(5, 1).words(3)
    assert first.tolist() == words[:2].view("<u2")[:5].tolist()
    assert second.tolist() == words[2:].view("<u2").tolist()
    assert len(luck.halves(0)) == 0


@pytest.mark.parametrize("count", [0, 1, 100])
def test_an_order_has_each_number_once(count: int) -> None:
    assert sorted(Luck(3, 3).order(count).tolist()) == list(range(count))


def test_orders_differ() -> None:
    luck = Luck(3, 3)
    assert not np.array_equal(luck.order(50), luck.order(50))
