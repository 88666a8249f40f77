"""Attacks on peer sampling, on the shipped sampler and on published ones, in one bench."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from msgspec import Struct

from linnet.core.ids import PeerId
from linnet.lab.errors import LabError
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.sim.attacks.sampling import Attack, AttackBench, AttackPlan, Figures, brahms, cyclon, shipped
from linnet.sim.baselines.brahms import BrahmsConfig
from linnet.sim.baselines.gossip import Gossip, Way
from linnet.sim.baselines.stream_sampler import KnowledgeFreeSampler, Parts, Pulling

OURS, TRUSTING, CYCLON, BRAHMS = "ours", "ours, three friends", "cyclon", "brahms"
PUBLISHED = "published sampler"
"""Pulls with the sampler of Anceaume, Busnel, Sericola 2013: all ids of an answer are offered."""
WAYS = (OURS, TRUSTING, PUBLISHED, CYCLON, BRAHMS)
_VIEW, _ROWS, _COLUMNS = 20, 10, 50
"""Of the published sampler, the latter two as in its evaluation."""
_FRIENDS = 3
_LOOK = 10
"""Rounds between two points of a curve."""


class SamplingPlan(Struct, frozen=True):
    """One run."""

    way: str
    attack: str
    share: float
    """Of liars."""
    nodes: int
    rounds: int
    sybils: int = 0


def measure_attack(plan: SamplingPlan, seed: int) -> dict[str, dict[int, int]]:
    """What views hold, by round; the last figures in bin 0 of the others."""
    lying = round(plan.share * plan.nodes)
    attack = Attack(plan.attack)
    bench = AttackBench(
        way_of(plan),
        AttackPlan(
            nodes=plan.nodes,
            liars=lying,
            rounds=plan.rounds,
            attack=attack,
            start=plan.rounds // 2 if attack is Attack.SLEEPER else 0,
            friends=_FRIENDS if plan.way == TRUSTING else 0,
            sybils=plan.sybils,
            is_asking=True,
            seed=seed,
        ),
    )
    figures = bench.run()
    looked = [each for each in figures if each.round % _LOOK == 0 or each.round == 1]
    return {
        "places": {each.round: each.places for each in looked},
        "lying": {each.round: each.lying for each in looked},
        "victim_places": {each.round: each.victim_places for each in looked},
        "victim_lying": {each.round: each.victim_lying for each in looked},
        **{name: {0: value} for name, value in _ends(figures).items()},
    }


def _ends(figures: list[Figures]) -> dict[str, int]:
    last = figures[-1]
    return {
        "isolated": last.isolated,
        "isolated_most": max(each.isolated for each in figures),
        "unknown": last.unknown,
        "most_known": last.most_known,
        "deviation_milli": round(1000 * last.deviation),
        "honest": last.honest,
    }


def way_of(plan: SamplingPlan) -> Way:
    """How nodes of a run sample."""
    if plan.way in (OURS, TRUSTING):
        halved = max(50, 2 * plan.nodes // TrackerlessConfig().answer)
        return shipped(TrackerlessConfig(halve_rounds=halved))
    if plan.way == PUBLISHED:
        return _published()
    if plan.way == CYCLON:
        return cyclon()
    if plan.way == BRAHMS:
        return brahms(BrahmsConfig())
    raise LabError(f"no way to sample peers is called {plan.way!r}")


def _published() -> Way:
    parts = Parts(_VIEW, _VIEW)

    def make(ours: PeerId, first: Sequence[PeerId], trusted: Sequence[PeerId], rng: Random) -> Gossip:
        memory = KnowledgeFreeSampler(_VIEW, _ROWS, _COLUMNS, rng.randbytes(16), rng)
        return Pulling(ours, first, memory, parts, rng)

    return Way(make, parts.answer, sent=1)
