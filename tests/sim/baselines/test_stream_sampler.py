"""Samplers of streams as published: what they give, and what an attacker has to spend."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from linnet.core.ids import PeerId
from linnet.overlay.gossip.peer_sampling import CountMin
from linnet.sim.baselines.gossip import Ask, fresh
from linnet.sim.baselines.stream_sampler import (
    EvenEviction,
    KnowledgeFreeSampler,
    OmniscientSampler,
    Parts,
    Pulling,
    Sampler,
    divergence,
    flooding_effort,
    gain,
    targeted_effort,
)


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


def node(parts: Parts) -> Pulling:
    first = [peer(number) for number in range(1, 5)]
    return Pulling(peer(0), first, Sampler(4, Random(1)), parts, Random(2))


def test_as_many_of_an_answer_are_offered_as_is_said() -> None:
    for offered, changed in ((1, 1), (2, 2)):
        pulling = node(Parts(offered=offered))
        before = set(pulling.view)
        pulling.answered(peer(1), fresh([peer(0), *[peer(number) for number in range(10, 20)]]))
        assert 1 <= len(set(pulling.view) - before) <= changed
        assert peer(0) not in pulling.view


def test_whoever_asks_is_taken_in_only_if_introduced() -> None:
    for is_introduced in (True, False):
        pulling = node(Parts(answer=3, is_introduced=is_introduced))
        answer = pulling.asked(peer(9), fresh([peer(9)]))
        assert answer[0].peer == peer(0)
        assert len(answer) == 3
        assert (peer(9) in pulling.view) is is_introduced


def test_it_pulls_from_one_that_it_knows() -> None:
    (ask,) = node(Parts()).begin()
    assert ask == Ask(ask.peer, fresh([peer(0)]), is_answered=True)
    assert ask.peer in node(Parts()).view
    assert Pulling(peer(0), [], Sampler(4, Random(1)), Parts(), Random(2)).begin() == []


def test_with_even_eviction_those_seen_often_give_way_as_others_do() -> None:
    gone = [0, 0]
    for seed in range(300):
        memory = EvenEviction(2, CountMin(4, 64, b"k" * 32), Random(seed), 0.25)
        for number in (0, 1, 1, 1, 1, 2):
            memory.count(peer(number))
            evicted = memory.offer(peer(number))
            if evicted is not None:
                gone[int.from_bytes(evicted, "big")] += 1
    assert sum(gone) > 200
    assert 0.7 < gone[0] / gone[1] < 1.4
