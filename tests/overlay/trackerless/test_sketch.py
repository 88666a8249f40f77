from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.overlay.trackerless.sketch import CountMin

KEY = b"k" * 32
IDS = st.lists(st.integers(0, 30).map(lambda number: number.to_bytes(4, "big")), max_size=80)


@given(IDS)
def test_an_estimate_is_never_below_the_truth_nor_above_the_whole(stream: list[bytes]) -> None:
    sketch = CountMin(4, 16, KEY)
    truth = Counter(stream)
    for seen in stream:
        assert sketch.count(seen) >= 1
    for seen, many in truth.items():
        assert many <= sketch.estimate(seen) <= len(stream)


@given(IDS, st.floats(0, 1))
def test_the_quantile_is_that_of_the_counters_which_are_not_zero(stream: list[bytes], tau: float) -> None:
    sketch = CountMin(1, 64, KEY)
    for place, seen in enumerate(stream):
        sketch.count(seen)
        if place == 40:
            sketch.halve()
    # With one row the counters are known from outside: one id of each counter tells its value.
    counters = sorted({sketch._place(seen): sketch.estimate(seen) for seen in stream}.values())
    expected = counters[int(tau * (len(counters) - 1))] if counters else 0.0
    assert sketch.quantile(tau) == expected


def test_ids_that_flood_do_not_lift_the_rare_ones() -> None:
    rng = Random(1)
    sketch = CountMin(4, 256, KEY)
    flooding = [rng.randbytes(32) for _ in range(30)]
    rare = [rng.randbytes(32) for _ in range(100)]
    for _ in range(200):
        for seen in flooding:
            sketch.count(seen)
    for seen in rare:
        sketch.count(seen)
    assert sum(sketch.estimate(seen) <= 2 for seen in rare) >= 95
    assert all(200 <= sketch.estimate(seen) <= 202 for seen in flooding)


def test_halving_lets_the_past_weigh_half_again_and_again() -> None:
    sketch = CountMin(2, 1024, KEY)
    for _ in range(1024):
        sketch.count(b"old")
    for halvings in range(1, 13):
        sketch.halve()
        assert sketch.estimate(b"old") == pytest.approx(1024 / 2**halvings, abs=1)
    assert sketch.count(b"old") - sketch.estimate(b"none") == pytest.approx(1.25, abs=0.01)
    for _ in range(20):
        sketch.halve()
    assert sketch.estimate(b"old") == 0
    assert sketch.quantile(0.25) == 0


def test_positions_depend_on_the_key() -> None:
    ids = [Random(2).randbytes(32) for _ in range(50)]
    one, other = CountMin(4, 1024, KEY), CountMin(4, 1024, b"j" * 32)
    assert sum(one._place(seen) == other._place(seen) for seen in ids) == 0
    assert all(one._place(seen) == CountMin(4, 1024, KEY)._place(seen) for seen in ids)


def test_what_is_remembered_of_ids_is_bounded_and_forgetting_changes_nothing() -> None:
    rng = Random(3)
    ids = [rng.randbytes(32) for _ in range(40)]
    stream = [rng.choice(ids) for _ in range(500)]
    roomy, tight = CountMin(4, 64, KEY), CountMin(4, 64, KEY, remembered=5)
    assert [roomy.count(seen) for seen in stream] == [tight.count(seen) for seen in stream]
    assert len(tight._places) == 5
    assert roomy.least() == tight.least()


@pytest.mark.parametrize(("rows", "columns"), [(0, 1), (17, 1), (1, 0)])
def test_a_sketch_has_counters(rows: int, columns: int) -> None:
    with pytest.raises(ValueError, match="rows"):
        CountMin(rows, columns, KEY)
