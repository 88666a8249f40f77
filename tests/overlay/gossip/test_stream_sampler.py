from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.ids import PeerId
from linnet.overlay.gossip.peer_sampling import CountMin, StreamSampler

KEY = b"k" * 32


def peer(number: int) -> PeerId:
    return PeerId(number.to_bytes(32, "big"))


def sampler(size: int, columns: int = 1024, seed: int = 1) -> StreamSampler:
    return StreamSampler(size, CountMin(4, columns, KEY), Random(seed), 0.25)


STEPS = st.lists(
    st.tuples(st.sampled_from(["see", "see", "see", "remove", "round", "halve"]), st.integers(0, 12)),
    max_size=40,
)


@given(STEPS)
def test_members_are_few_and_different_and_none_is_lost_but_for_another(steps: list[tuple[str, int]]) -> None:
    memory = sampler(5)
    for step, number in steps:
        before = memory.members
        if step == "see":
            memory.count(peer(number))
            evicted = memory.offer(peer(number))
            if peer(number) in before:
                assert (evicted, memory.members) == (None, before), "who is in changes nothing"
            elif evicted is not None:
                assert len(before) == 5
                assert set(memory.members) == (set(before) - {evicted}) | {peer(number)}
            assert len(memory) >= len(before), "it never shrinks by an offer"
        elif step == "remove":
            assert memory.remove(peer(number)) == (peer(number) in before)
            assert set(memory.members) == set(before) - {peer(number)}
        elif step == "round":
            memory.round()
        else:
            memory.halve()
        assert len(set(memory.members)) == len(memory) <= 5
        assert all(member in memory for member in memory)
        assert memory.is_sparse == (len(memory) <= 2)
        assert set(memory.sample(3)) <= set(memory.members)
        assert memory.draw() in (memory.members or (None,))


def output_share(
    weights: list[float], marked: int, seed: int, columns: int = 1024, length: int = 40_000
) -> float:
    """What part of the output is the first `marked` ids, for a stream of ids with these weights."""
    rng = Random(seed)
    ids = [peer(number) for number in range(len(weights))]
    memory = sampler(50, columns, seed)
    hits = total = 0
    for place, seen in enumerate(rng.choices(ids, weights, k=length)):
        memory.count(seen)
        memory.offer(seen)
        if place > length // 4:
            total += 1
            drawn = memory.draw()
            hits += drawn is not None and int.from_bytes(drawn, "big") < marked
    return hits / total


def test_a_tenth_of_the_ids_with_four_fifths_of_the_stream_get_their_fair_share() -> None:
    weights = [0.8 / 100] * 100 + [0.2 / 900] * 900
    share = output_share(weights, 100, seed=3)
    assert share <= 1.2 * 0.1
    assert output_share(weights, 100, seed=3, columns=64) > 2 * share, "columns are what withstands ids"


def test_one_id_with_half_of_the_stream_is_as_rare_as_any() -> None:
    assert output_share([0.5] + [0.5 / 999] * 999, 1, seed=4) <= 0.004


def test_an_even_stream_stays_even() -> None:
    assert output_share([1.0] * 1000, 100, seed=5, length=25_000) == pytest.approx(0.1, abs=0.02)


def test_of_two_members_the_one_seen_more_often_gives_way_and_the_other_is_drawn() -> None:
    gone = [0, 0]
    for seed in range(200):
        memory = sampler(2, seed=seed)
        for number in (0, 1, 1, 1, 1, 1, 1):
            memory.count(peer(number))
            memory.offer(peer(number))
        assert {memory.draw_rare() for _ in range(20)} == {peer(0), peer(1)}
        memory.count(peer(2))
        evicted = memory.offer(peer(2))
        if evicted is not None:
            gone[int.from_bytes(evicted, "big")] += 1
    assert gone[1] == pytest.approx(3 * gone[0], rel=0.4)
    assert sum(gone) > 100
    assert sampler(2).draw_rare() is None


def test_it_goes_on_while_counters_are_zero() -> None:
    memory = sampler(10, columns=4096)
    replaced = 0
    for number in range(2000):
        memory.count(peer(number % 50))
        replaced += memory.offer(peer(number % 50)) is not None
    assert replaced > 100


IDS = st.lists(st.integers(0, 30).map(lambda number: number.to_bytes(4, "big")), max_size=80)


@given(IDS)
def test_an_estimate_is_never_below_the_truth_nor_above_the_whole(stream: list[bytes]) -> None:
    sketch = CountMin(4, 16, KEY)
    truth = Counter(stream)
    for seen in stream:
        assert sketch.count_id(seen) >= 1
    for seen, many in truth.items():
        assert many <= sketch.estimate_count(seen) <= len(stream)


@given(IDS, st.floats(0, 1))
def test_the_quantile_is_that_of_the_counters_which_are_not_zero(stream: list[bytes], tau: float) -> None:
    sketch = CountMin(1, 64, KEY)
    for place, seen in enumerate(stream):
        sketch.count_id(seen)
        if place == 40:
            sketch.halve_counts()
    # With one row the counters are known from outside: one id of each counter tells its value.
    counters = sorted({sketch._find_places(seen): sketch.estimate_count(seen) for seen in stream}.values())
    expected = counters[int(tau * (len(counters) - 1))] if counters else 0.0
    assert sketch.quantile(tau) == expected


def test_ids_that_flood_do_not_lift_the_rare_ones() -> None:
    rng = Random(1)
    sketch = CountMin(4, 256, KEY)
    flooding = [rng.randbytes(32) for _ in range(30)]
    rare = [rng.randbytes(32) for _ in range(100)]
    for _ in range(200):
        for seen in flooding:
            sketch.count_id(seen)
    for seen in rare:
        sketch.count_id(seen)
    assert sum(sketch.estimate_count(seen) <= 2 for seen in rare) >= 95
    assert all(200 <= sketch.estimate_count(seen) <= 202 for seen in flooding)


def test_halving_lets_the_past_weigh_half_again_and_again() -> None:
    sketch = CountMin(2, 1024, KEY)
    for _ in range(1024):
        sketch.count_id(b"old")
    for halvings in range(1, 13):
        sketch.halve_counts()
        assert sketch.estimate_count(b"old") == pytest.approx(1024 / 2**halvings, abs=1)
    assert sketch.count_id(b"old") - sketch.estimate_count(b"none") == pytest.approx(1.25, abs=0.01)
    for _ in range(20):
        sketch.halve_counts()
    assert sketch.estimate_count(b"old") == 0
    assert sketch.quantile(0.25) == 0


def test_positions_depend_on_the_key() -> None:
    ids = [Random(2).randbytes(32) for _ in range(50)]
    one, other = CountMin(4, 1024, KEY), CountMin(4, 1024, b"j" * 32)
    assert sum(one._find_places(seen) == other._find_places(seen) for seen in ids) == 0
    assert all(one._find_places(seen) == CountMin(4, 1024, KEY)._find_places(seen) for seen in ids)


def test_what_is_remembered_of_ids_is_bounded_and_forgetting_changes_nothing() -> None:
    rng = Random(3)
    ids = [rng.randbytes(32) for _ in range(40)]
    stream = [rng.choice(ids) for _ in range(500)]
    roomy, tight = CountMin(4, 64, KEY), CountMin(4, 64, KEY, remembered=5)
    assert [roomy.count_id(seen) for seen in stream] == [tight.count_id(seen) for seen in stream]
    assert len(tight._places) == 5
    assert roomy.least() == tight.least()


@pytest.mark.parametrize(("rows", "columns"), [(0, 1), (17, 1), (1, 0)])
def test_a_sketch_has_counters(rows: int, columns: int) -> None:
    with pytest.raises(ValueError, match="rows"):
        CountMin(rows, columns, KEY)
