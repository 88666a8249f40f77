from __future__ import annotations

from random import Random

import pytest

from linnet.core.ids import PeerId
from linnet.sim.baselines.knowledge_free import KnowledgeFreeSampler, flooding_effort, targeted_effort


def peer(number: int) -> PeerId:
    return PeerId(number.to_bytes(32, "big"))


def sampler(size: int, rows: int, columns: int, seed: int = 1) -> KnowledgeFreeSampler:
    return KnowledgeFreeSampler(size, rows, columns, b"k" * 32, Random(seed))


@pytest.mark.parametrize(
    ("columns", "rows", "eta", "targeted", "flooding"),
    [
        (10, 5, 1e-1, 38, 44),
        (10, 5, 1e-4, 104, 110),
        (50, 5, 1e-1, 193, 306),
        (50, 5, 1e-4, 537, 650),
        (50, 10, 1e-1, 227, 306),
        (50, 40, 1e-4, 640, 650),
        (250, 10, 1e-1, 1139, 1940),
        (250, 10, 1e-4, 2874, 3676),
    ],
)
def test_an_attackers_effort_is_as_published(
    columns: int, rows: int, eta: float, targeted: int, flooding: int
) -> None:
    assert targeted_effort(columns, rows, eta) == targeted
    assert flooding_effort(columns, eta) == flooding


def test_it_stops_for_ever_while_a_counter_is_zero() -> None:
    frozen = sampler(10, 4, 500)
    rng = Random(2)
    for number in range(10):
        frozen.count(peer(number))
        frozen.offer(peer(number))
    before = frozen.members
    for _ in range(20_000):
        seen = peer(rng.randrange(100))
        frozen.count(seen)
        assert frozen.offer(seen) is None
    assert frozen.members == before


def share_of_liars(columns: int, rows: int) -> float:
    """A tenth of a thousand ids sends four fifths of the stream."""
    rng, memory = Random(3), sampler(50, rows, columns)
    hits = total = 0
    for place in range(30_000):
        seen = peer(rng.randrange(100) if rng.random() < 0.8 else rng.randrange(100, 1000))
        memory.count(seen)
        memory.offer(seen)
        if place > 7500:
            total += 1
            hits += int.from_bytes(memory.draw(), "big") < 100
    return hits / total


def test_more_flooding_ids_than_columns_take_most_of_the_output() -> None:
    assert share_of_liars(columns=10, rows=5) > 0.6
    assert share_of_liars(columns=50, rows=10) > 0.4


def test_whoever_is_in_changes_nothing_and_nobody_is_lost() -> None:
    rng, memory = Random(4), sampler(5, 2, 4)
    replaced = 0
    for _ in range(2000):
        seen, before = peer(rng.randrange(20)), memory.members
        memory.count(seen)
        evicted = memory.offer(seen)
        if seen in before:
            assert memory.members == before
        elif evicted is not None:
            replaced += 1
            assert set(memory.members) == set(before) - {evicted} | {seen}
        assert len(memory.members) >= len(before)
    assert replaced > 50
