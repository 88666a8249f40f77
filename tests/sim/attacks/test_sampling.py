from __future__ import annotations

import os
from collections.abc import Sequence
from random import Random

import msgspec
import pytest

from linnet.core.ids import PeerId
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.peer_sampling import CountMin
from linnet.sim.attacks.sampling import Attack, AttackBench, AttackPlan, Figures, Shipped, shipped
from linnet.sim.baselines.gossip import Gossip, Way
from linnet.sim.baselines.stream_sampler import EvenEviction, Memory, Parts, Pulling, Sampler

VIEW = 12
CONFIG = TrackerlessConfig(view=VIEW, answer=VIEW, sketch_columns=256, halve_rounds=25)
"""The defaults, scaled to a hundred nodes: counts are halved after about two appearances of each id."""
PLAN = AttackPlan(nodes=100, liars=10, rounds=100, view=VIEW)
SLEEPER = AttackPlan(nodes=100, liars=20, rounds=190, view=VIEW, attack=Attack.SLEEPER, start=100)

soak = pytest.mark.skipif(not os.environ.get("LINNET_SOAK"), reason="a thousand nodes take minutes")


def run(way: Way, plan: AttackPlan) -> list[Figures]:
    return AttackBench(way, plan).run()


def pulling(parts: Parts, view: int = VIEW, columns: int | None = None) -> Way:
    """Sampling by pulls with some of its parts; without columns nothing is counted."""

    def make(ours: PeerId, first: Sequence[PeerId], trusted: Sequence[PeerId], rng: Random) -> Gossip:
        memory: Memory = Sampler(view, rng)
        if columns is not None:
            memory = EvenEviction(view, CountMin(4, columns, rng.randbytes(32)), rng, 0.25)
        return Pulling(ours, first, memory, parts, rng)

    return Way(make, parts.answer, sent=1)


def share(figures: list[Figures]) -> float:
    """The liars' share of all views, over some rounds."""
    return sum(figure.lying for figure in figures) / sum(figure.places for figure in figures)


def share_at_the_end(figures: list[Figures]) -> float:
    """The mean over the last fifty rounds."""
    return share(figures[-50:])


def test_without_introductions_most_nodes_are_forgotten_and_with_them_none() -> None:
    plan = msgspec.structs.replace(PLAN, liars=0, rounds=60)
    forgotten = run(pulling(Parts(VIEW, VIEW, is_introduced=False)), plan)[-1]
    known = run(shipped(CONFIG), plan)
    assert forgotten.unknown > 0.6 * 100
    assert forgotten.most_known > 50
    assert max(figures.unknown for figures in known) == 0
    assert known[-1].most_known < 40
    assert known[-1].deviation < 6.0


def test_a_node_that_nobody_knew_is_known_soon_after_it_asks() -> None:
    bench = AttackBench(shipped(CONFIG), msgspec.structs.replace(PLAN, liars=0))
    newcomer, others = PeerId(b"n" * 32), list(bench.nodes)
    bench.join(newcomer, others[:3])
    assert not any(newcomer in bench.view(peer) for peer in others)
    for number in range(1, 31):
        bench.round(number)
    assert sum(newcomer in bench.view(peer) for peer in others) >= 3


def test_taking_in_all_that_is_named_gives_every_view_to_liars_and_offering_one_does_not() -> None:
    plan = msgspec.structs.replace(PLAN, liars=15, rounds=30)
    everything = run(pulling(Parts(VIEW, VIEW)), plan)
    one = run(shipped(CONFIG), plan)
    assert everything[-1].share > 0.9
    assert everything[-1].isolated > 20
    assert one[-1].share < 1.5 * 0.15
    assert max(figures.isolated for figures in one) == 0


def test_offering_one_without_counting_only_slows_liars_down() -> None:
    uncounted = run(pulling(Parts(VIEW, 1)), PLAN)
    assert uncounted[19].share < 0.2
    assert share_at_the_end(uncounted) > 1.5 * 0.1
    assert uncounted[-1].share > uncounted[59].share > uncounted[19].share


@pytest.mark.parametrize(("liars", "is_asking"), [(10, False), (10, True), (30, True)])
def test_a_hub_of_liars_stays_near_its_fair_share(liars: int, is_asking: bool) -> None:
    figures = run(shipped(CONFIG), msgspec.structs.replace(PLAN, liars=liars, is_asking=is_asking))
    assert 0.5 * liars / 100 <= share_at_the_end(figures) <= 1.5 * liars / 100, "no more, and they do attack"
    assert max(figure.share for figure in figures) <= 2 * liars / 100
    assert sum(figure.isolated for figure in figures) == 0


@pytest.mark.parametrize("seed", range(20 if os.environ.get("LINNET_SOAK") else 2))
def test_no_victim_is_eclipsed(seed: int) -> None:
    plan = msgspec.structs.replace(PLAN, attack=Attack.ECLIPSE, rounds=80, seed=seed)
    figures = run(shipped(CONFIG), plan)
    assert max(figure.victim_share for figure in figures) <= 0.75
    end = figures[-50:]
    assert sum(figure.victim_lying for figure in end) <= 0.2 * sum(figure.victim_places for figure in end)
    assert share_at_the_end(figures) <= 1.5 * 0.1


def test_sleepers_profit_where_counts_do_not_age_and_liars_where_they_age_too_fast() -> None:
    ageless, hasty, aged = (
        share_at_the_end(run(pulling(Parts(VIEW, 1, halve_rounds=rounds), columns=256), SLEEPER))
        for rounds in (0, 4, 20)
    )
    assert ageless > 1.25 * 0.2, "what was counted before speaks for them"
    assert ageless > hasty > 1.05 * 0.2, "what is forgotten at once cannot tell them from others"
    assert aged < 0.2


def test_sleepers_fall_below_their_fair_share_with_the_defaults() -> None:
    figures = run(shipped(CONFIG), SLEEPER)
    assert 0.2 < max(figure.share for figure in figures) <= 2 * 0.2, "they get more at first"
    assert 0.5 * 0.2 <= share_at_the_end(figures) <= 0.2
    assert sum(figure.isolated for figure in figures) == 0


def test_invented_ids_count_as_nodes_if_somebody_answers_for_them_and_for_nothing_if_not() -> None:
    plan = msgspec.structs.replace(PLAN, liars=3, rounds=80, attack=Attack.SYBIL, sybils=400)
    answered = share_at_the_end(run(shipped(CONFIG), plan))
    silent = share_at_the_end(run(shipped(CONFIG), msgspec.structs.replace(plan, are_sybils_up=False)))
    assert answered > 0.4, "without trust, who has most ids has most of the views: said, not solved"
    assert silent < 0.5 * answered


def test_answers_do_not_show_whom_a_node_trusts_nor_who_trusts_it() -> None:
    plan = AttackPlan(nodes=80, liars=0, view=VIEW, friends=3, seed=3)
    bench = AttackBench(shipped(CONFIG), plan)
    told: dict[PeerId, dict[PeerId, int]] = {peer: {} for peer in bench.nodes}
    for number in range(1, 151):
        bench.round(number)
        for peer, times in told.items():
            for other in bench.view(peer):
                times[other] = times.get(other, 0) + 1
    friends: list[int] = []
    fans: list[int] = []
    others: list[int] = []
    for peer, node in bench.nodes.items():
        for other, there in bench.nodes.items():
            assert isinstance(node, Shipped)
            assert isinstance(there, Shipped)
            if other in node.trusted:
                friends.append(told[peer].get(other, 0))
            elif peer in there.trusted:
                fans.append(told[peer].get(other, 0))
            elif peer != other:
                others.append(told[peer].get(other, 0))
    assert chance_of_being_above(friends, others) == pytest.approx(0.5, abs=0.05)
    assert chance_of_being_above(fans, others) == pytest.approx(0.5, abs=0.1)


def chance_of_being_above(some: list[int], others: list[int]) -> float:
    """How well one number tells the two apart: 0.5 is not at all."""
    wins = sum((one > other) + 0.5 * (one == other) for one in some for other in others)
    return wins / (len(some) * len(others))


def test_a_run_replays_and_its_figures_are_whole_numbers() -> None:
    plan = msgspec.structs.replace(PLAN, nodes=40, liars=4, rounds=10)
    first, second = run(shipped(CONFIG), plan), run(shipped(CONFIG), plan)
    assert first == second
    assert first != run(shipped(CONFIG), msgspec.structs.replace(plan, seed=2))
    last = first[-1]
    assert all(isinstance(value, int) for value in msgspec.structs.astuple(last))
    assert (last.round, last.honest) == (10, 36)
    assert last.places <= 36 * VIEW
    assert (last.share, last.victim_share) == (
        last.lying / last.places,
        last.victim_lying / last.victim_places,
    )


THOUSAND = AttackPlan(nodes=1000, liars=100, rounds=400)


@soak
@pytest.mark.timeout(3600)
def test_a_thousand_nodes_without_introductions_are_forgotten() -> None:
    plan = msgspec.structs.replace(THOUSAND, liars=0, rounds=200)
    forgotten = run(pulling(Parts(10, 10, is_introduced=False), view=20), plan)
    assert forgotten[9].unknown < forgotten[49].unknown < forgotten[-1].unknown
    assert forgotten[-1].unknown > 900
    known = run(shipped(TrackerlessConfig()), plan)
    assert max(figures.unknown for figures in known) == 0


@soak
@pytest.mark.timeout(3600)
def test_a_thousand_nodes_with_everything_taken_in() -> None:
    """Counting alone does not help where all that an answer names is offered, and any member gives way."""
    figures = run(
        pulling(Parts(10, 10), view=20, columns=1024), msgspec.structs.replace(THOUSAND, rounds=100)
    )
    assert [figures[at - 1].share for at in (5, 10, 20, 100)] == pytest.approx(
        [0.37, 0.73, 0.97, 1.0], abs=0.06
    )


@soak
@pytest.mark.timeout(3600)
def test_a_thousand_nodes_without_counting() -> None:
    figures = run(pulling(Parts(10, 1), view=20), THOUSAND)
    assert [figures[at - 1].share for at in (10, 50, 100)] == pytest.approx([0.11, 0.20, 0.38], abs=0.06)
    assert figures[-1].share > 0.9


@soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("liars", [100, 200, 300])
def test_a_thousand_nodes_with_the_defaults(liars: int) -> None:
    figures = run(shipped(TrackerlessConfig()), msgspec.structs.replace(THOUSAND, liars=liars, friends=3))
    assert share_at_the_end(figures) <= 1.5 * liars / 1000
    assert max(figure.share for figure in figures) <= 2 * liars / 1000
    assert sum(figure.isolated for figure in figures) == 0


@soak
@pytest.mark.timeout(3600)
def test_a_thousand_nodes_with_sleepers() -> None:
    plan = msgspec.structs.replace(
        THOUSAND, liars=200, rounds=600, attack=Attack.SLEEPER, start=200, friends=3
    )
    figures = run(shipped(TrackerlessConfig()), plan)
    assert max(figure.share for figure in figures) <= 2 * 0.2
    assert share_at_the_end(figures) <= 1.5 * 0.2
