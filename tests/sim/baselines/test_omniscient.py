from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from linnet.core.ids import PeerId
from linnet.sim.baselines.omniscient import OmniscientSampler, divergence, gain


def peer(number: int) -> PeerId:
    return PeerId(number.to_bytes(32, "big"))


def test_its_output_is_even_though_one_id_is_half_of_the_stream() -> None:
    nodes, rng = 200, Random(1)
    chances = {peer(0): 0.5} | {peer(number): 0.5 / (nodes - 1) for number in range(1, nodes)}
    memory = OmniscientSampler(50, chances, rng)
    into, out = Counter[PeerId](), Counter[PeerId]()
    for seen in rng.choices(list(chances), list(chances.values()), k=60_000):
        into[seen] += 1
        memory.offer(seen)
        out[memory.draw()] += 1
    assert gain(into, out, nodes) >= 0.98
    assert out[peer(0)] / 60_000 < 0.01
    assert len(memory.members) == 50


def test_an_id_that_is_in_changes_nothing() -> None:
    memory = OmniscientSampler(2, {peer(number): 0.25 for number in range(4)}, Random(2))
    assert [memory.offer(peer(0)), memory.offer(peer(1)), memory.offer(peer(0))] == [None, None, None]
    assert memory.members == (peer(0), peer(1))
    assert memory.offer(peer(2)) in (peer(0), peer(1))
    assert len(memory.members) == 2


def test_divergence_is_zero_for_an_even_stream_and_the_logarithm_for_a_single_id() -> None:
    assert divergence({peer(number): 7 for number in range(8)}, 8) == pytest.approx(0.0)
    assert divergence({peer(0): 5}, 8) == pytest.approx(2.0794, abs=1e-4)
