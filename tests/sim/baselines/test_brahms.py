from __future__ import annotations

from collections import Counter
from random import Random

from linnet.core.ids import PeerId
from linnet.sim.attacks.sampling import AttackBench, AttackPlan, brahms
from linnet.sim.baselines.brahms import Brahms, BrahmsConfig, MinWise
from linnet.sim.baselines.gossip import fresh

CONFIG = BrahmsConfig(view=20, samples=20)


def peer(number: int) -> PeerId:
    return PeerId(Random(number).randbytes(32))


PEERS = [peer(number) for number in range(100)]


def test_shares_are_those_published() -> None:
    assert (CONFIG.pushes, CONFIG.pulls, CONFIG.view - CONFIG.pushes - CONFIG.pulls) == (9, 9, 2)


def test_a_round_pushes_us_and_pulls_views() -> None:
    node = Brahms(PEERS[0], PEERS[1:21], CONFIG, Random(1))
    asks = node.begin()
    assert [ask.entries for ask in asks] == [fresh([PEERS[0]])] * 9 + [()] * 9
    assert [ask.is_answered for ask in asks] == [False] * 9 + [True] * 9
    assert all(ask.peer in node.view for ask in asks)
    assert node.asked(PEERS[50], fresh([PEERS[50]])) == ()
    assert node.asked(PEERS[50], ()) == fresh(node.view)


def test_a_view_is_drawn_from_pushes_pulls_and_samples() -> None:
    node = Brahms(PEERS[0], PEERS[1:21], CONFIG, Random(1))
    for number in range(30, 39):
        node.asked(PEERS[number], fresh([PEERS[number]]))
    node.answered(PEERS[1], fresh([PEERS[0], *PEERS[40:60]]))
    samples = set(node.samples)
    node.end()
    view = set(node.view)
    assert set(PEERS[30:39]) <= view
    assert len(view & set(PEERS[40:60])) == 9
    assert len(view & samples) == 2
    assert PEERS[0] not in view


def test_too_many_pushes_or_none_leave_the_view_as_it_is() -> None:
    flooded = Brahms(PEERS[0], PEERS[1:21], CONFIG, Random(1))
    for number in range(30, 40):
        flooded.asked(PEERS[number], fresh([PEERS[number]]))
    lonely = Brahms(PEERS[0], PEERS[1:21], CONFIG, Random(1))
    for node in (flooded, lonely):
        node.answered(PEERS[1], fresh(PEERS[40:60]))
        node.end()
        assert node.view == tuple(PEERS[1:21])


def test_a_min_wise_sample_does_not_care_how_often_an_id_comes() -> None:
    rng, held = Random(4), Counter[PeerId]()
    for _ in range(3000):
        sampler = MinWise(rng)
        for _ in range(3):
            sampler.see(PEERS[0])
        for other in PEERS[:10]:
            sampler.see(other)
        assert sampler.peer is not None
        held[sampler.peer] += 1
    assert all(200 < held[other] < 400 for other in PEERS[:10])


def test_a_sampler_whose_node_is_down_begins_anew() -> None:
    down: dict[PeerId, None] = {}
    node = Brahms(PEERS[0], PEERS[1:21], CONFIG, Random(1), lambda other: other not in down)
    down.update(dict.fromkeys(PEERS[1:21]))
    for _ in range(200):
        node.end()
    assert node.samples == ()


def test_views_are_biased_by_liars_and_samples_save_nodes_from_being_cut_off() -> None:
    config = BrahmsConfig(view=12, samples=12)
    plan = AttackPlan(nodes=100, liars=10, rounds=40, view=12, is_asking=True, seed=5)
    last = AttackBench(brahms(config), plan).run()[-1]
    assert 0.15 < last.share < 0.9
    assert last.isolated == 0
