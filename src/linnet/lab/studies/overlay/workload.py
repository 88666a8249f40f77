"""What is run: each case is an experiment, a setting of it, and a seed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import astuple
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from linnet.lab.studies.overlay.attacks import BRAHMS, CYCLON, OURS, TRUSTING, WAYS, SamplingPlan
from linnet.lab.studies.overlay.bounds import BOUNDS, BoundsPlan, bounds_plans
from linnet.lab.studies.overlay.choosing import RING, TRACKER, ChoosingPlan
from linnet.lab.studies.overlay.data import Surroundings
from linnet.lab.studies.overlay.filters import FilterPlan
from linnet.lab.studies.overlay.living import LivingPlan
from linnet.lab.studies.overlay.mending import FAILURE, JOIN, PARTITION, MendingPlan
from linnet.lab.studies.overlay.parameters import (
    EPSILONS,
    FAILURES,
    FANOUTS,
    HASHES,
    LASTFM,
    SHARES,
    SYNTHETIC,
    TWITTER,
    TWITTER_SCALE,
    OverlayParameters,
)
from linnet.overlay.gossip.config import RingOrder
from linnet.sim.attacks.sampling import Attack
from linnet.sim.overlay.ring_dissemination import RingPlan

SAMPLING, FILTERS, RINGS, LIVING, DEGREES = "sampling", "filters", "rings", "living", "degrees"
MENDING, CHOOSING, SCALE = "mending", "choosing", "scale"
Plan = SamplingPlan | FilterPlan | RingPlan | LivingPlan | MendingPlan | ChoosingPlan | BoundsPlan

CALM, LIARS, CHURN, PHONES = "calm", "liars", "liars and churn", "phones"
ALL_LIARS = 0.1
_CHURN = 0.05
_KINDS = ("string", "string", "int", "bigint", "string")
_encode = msgspec.json.Encoder().encode


class Case(Struct, frozen=True):
    """One run."""

    experiment: str
    setting: str
    repeat: int
    seed: int
    plan: str
    """In JSON, as the experiment reads it."""


def seed_of(seed: int, name: str, repeat: int) -> int:
    """A seed of its own for each repeat of each name."""
    digest = hashlib.sha256(f"linnet/lab/overlay/{seed}/{name}/{repeat}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


def stages(parameters: OverlayParameters, around: Surroundings) -> dict[str, list[Case]]:
    """All cases, by stage."""
    found = {
        SAMPLING: sampling_cases(parameters),
        FILTERS: filter_cases(parameters, around),
        RINGS: ring_cases(parameters),
        LIVING: living_cases(parameters, around),
        DEGREES: degree_cases(parameters),
        MENDING: mending_cases(parameters, around),
        CHOOSING: choosing_cases(parameters, around),
        BOUNDS: bounds_cases(parameters),
        SCALE: scale_cases(parameters, around),
    }
    return {name: cases for name, cases in found.items() if cases}


def origins(around: Surroundings) -> list[str]:
    """Where interests come from: real ones as far as there are any, and drawn ones."""
    return [name for name in (TWITTER, LASTFM) if name in around.interests] + [SYNTHETIC]


def _cases(
    experiment: str, setting: str, plan: Plan, parameters: OverlayParameters, repeats: int
) -> list[Case]:
    raw = _encode(plan).decode()
    return [
        Case(experiment, setting, repeat, seed_of(parameters.seed, experiment, repeat), raw)
        for repeat in range(repeats)
    ]


def sampling_cases(parameters: OverlayParameters) -> list[Case]:
    """Attacks on samplers. Settings: way, attack, share."""
    nodes, rounds = parameters.attack_nodes, parameters.attack_rounds
    plans = [SamplingPlan(way, Attack.HUB, share, nodes, rounds) for way in WAYS for share in SHARES]
    plans += [
        SamplingPlan(way, Attack.ECLIPSE, ALL_LIARS, nodes, rounds) for way in (TRUSTING, CYCLON, BRAHMS)
    ]
    plans += [SamplingPlan(way, Attack.SLEEPER, 0.2, nodes, rounds) for way in (OURS, TRUSTING)]
    plans += [
        SamplingPlan(TRUSTING, Attack.SYBIL, 0.01, nodes, rounds, sybils)
        for sybils in (nodes, 4 * nodes, 16 * nodes)
    ]
    plans.append(SamplingPlan(OURS, Attack.HUB, 0.0, nodes, rounds))
    return [
        case
        for plan in plans
        for case in _cases(SAMPLING, sampling_setting(plan), plan, parameters, parameters.attack_repeats)
    ]


def sampling_setting(plan: SamplingPlan) -> str:
    """The name of a run."""
    sybils = f"|{plan.sybils}" if plan.sybils else ""
    return f"{plan.way}|{plan.attack}|{plan.share:g}{sybils}"


def filter_cases(parameters: OverlayParameters, around: Surroundings) -> list[Case]:
    """The curve of utility and privacy. Settings: origin, hashes, epsilon."""
    return [
        case
        for origin in origins(around)
        for hashes in HASHES
        for epsilon in EPSILONS
        for case in _cases(
            FILTERS, f"{origin}|{hashes}|{epsilon:g}", FilterPlan(epsilon, hashes), parameters, 1
        )
    ]


def ring_cases(parameters: OverlayParameters) -> list[Case]:
    """Large rings. Settings: nodes, fan-out, share that failed."""
    plans = [
        RingPlan(nodes=nodes, fanout=fanout, events=parameters.ring_events, seed=parameters.seed)
        for nodes in parameters.ring_sizes
        for fanout in FANOUTS
    ]
    largest = max(parameters.ring_sizes)
    plans += [
        RingPlan(nodes=largest, failed=failed, events=parameters.ring_events, seed=parameters.seed)
        for failed in (0.01, 0.05, *FAILURES)
    ]
    return [
        case
        for plan in plans
        for case in _cases(RINGS, f"{plan.nodes}|{plan.fanout}|{plan.failed:g}", plan, parameters, 1)
    ]


def _living(parameters: OverlayParameters, origin: str) -> LivingPlan:
    return LivingPlan(
        origin, parameters.nodes, parameters.topics, parameters.subscriptions, parameters.rounds
    )


def living_cases(parameters: OverlayParameters, around: Surroundings) -> list[Case]:
    """Whole overlays. Settings: origin, circumstances."""
    replace = msgspec.structs.replace
    cases = []
    for origin in origins(around):
        plain = _living(parameters, origin)
        found = {
            CALM: plain,
            LIARS: replace(plain, liars=ALL_LIARS),
            CHURN: replace(plain, liars=ALL_LIARS, churn=_CHURN),
        }
        if around.weeks and origin == origins(around)[0]:
            found[PHONES] = replace(plain, has_phones=True)
        for name, plan in found.items():
            cases += _cases(LIVING, f"{origin}|{name}", plan, parameters, parameters.repeats)
    return cases


def degree_cases(parameters: OverlayParameters) -> list[Case]:
    """Neighbours over the number of subscriptions. Settings: order of places, subscriptions."""
    cases = []
    for order in (RingOrder.ID, RingOrder.HASH):
        for each in parameters.growing:
            plan = LivingPlan(
                SYNTHETIC,
                parameters.nodes,
                max(parameters.topics, 2 * each),
                each,
                rounds=10,
                order=order,
                repair=0,
                events=1,
            )
            cases += _cases(DEGREES, f"{order}|{each}", plan, parameters, 1)
    return cases


def mending_cases(parameters: OverlayParameters, around: Surroundings) -> list[Case]:
    """Failures, a partition, newcomers. Settings: kind, share."""
    plain = _living(parameters, origins(around)[0])
    plans = [MendingPlan(FAILURE, plain, share) for share in FAILURES]
    plans += [MendingPlan(PARTITION, plain), MendingPlan(JOIN, plain, 0.1)]
    return [
        case
        for plan in plans
        for case in _cases(MENDING, f"{plan.kind}|{plan.share:g}", plan, parameters, parameters.repeats)
    ]


def choosing_cases(parameters: OverlayParameters, around: Surroundings) -> list[Case]:
    """A tracker's graph and rings. Settings: overlay."""
    plain = _living(parameters, origins(around)[0])
    return [
        case
        for overlay in (TRACKER, RING)
        for case in _cases(CHOOSING, overlay, ChoosingPlan(overlay, plain), parameters, parameters.repeats)
    ]


def bounds_cases(parameters: OverlayParameters) -> list[Case]:
    """Attacks with bounds. Settings: the attack."""
    return [
        case for plan in bounds_plans(parameters) for case in _cases(BOUNDS, plan.attack, plan, parameters, 1)
    ]


def scale_cases(parameters: OverlayParameters, around: Surroundings) -> list[Case]:
    """One overlay as large as was asked for, of Twitter users if they are known, as the published was."""
    if not parameters.scale:
        return []
    plan = LivingPlan(
        TWITTER_SCALE if TWITTER_SCALE in around.interests else SYNTHETIC,
        parameters.scale,
        parameters.scale,
        parameters.subscriptions,
        rounds=5,
        warmup=20,
        repair=5,
        events=1,
    )
    return _cases(SCALE, f"{parameters.scale}", plan, parameters, 1)


def cases_frame(spark: SparkSession, cases: Sequence[Case]) -> DataFrame:
    """Cases as rows, each a task of its own, in their order. Grain: one row per case."""
    rows = F.array(*(_row(case) for case in cases))
    numbered = spark.range(0, len(cases), 1, len(cases))
    return numbered.select(F.element_at(rows, (F.col("id") + 1).cast("int")).alias("case")).select("case.*")


def _row(case: Case) -> Column:
    names = Case.__struct_fields__
    values: Iterable[tuple[str, str, object]] = zip(names, _KINDS, astuple(case), strict=True)
    return F.struct(*(F.lit(value).cast(kind).alias(name) for name, kind, value in values))
