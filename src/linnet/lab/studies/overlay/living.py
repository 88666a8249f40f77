"""Whole overlays without trackers, from the first addresses to the last repair, in whole numbers."""

from __future__ import annotations

from msgspec import Struct

from linnet.lab.studies.overlay.data import Surroundings, topic_count
from linnet.lab.studies.overlay.parameters import SYNTHETIC
from linnet.overlay.gossip.config import RingOrder, TrackerlessConfig
from linnet.sim.overlay.course import Attendance, run_overlay
from linnet.sim.overlay.scenario import Interests, OverlayReport, OverlayScenario, drawn_interests

PPM = 1_000_000
MILLI = 1000
_RATIOS = (
    "hit_ratio",
    "hit_ratio_after_repair",
    "liar_view_share",
    "liar_view_share_peak",
    "liar_alike_share",
    "connected_topics",
    "connected_topics_least",
    "rings_right",
    "fetched",
)
_THOUSANDTHS = ("mean_degree", "mean_links", "mean_hops", "mean_delay_ms", "duplication", "join_rounds")
_COUNTS = (
    "causal_violations",
    "repeated",
    "noise",
    "max_hops",
    "events",
    "subscriptions",
    "liars",
    "messages",
    "intersections",
    "intersections_empty",
)
_MIDDAY = 12 * 3_600_000
"""Milliseconds of a week after which phones are looked at: by then all of them were seen for a while."""


class LivingPlan(Struct, frozen=True):
    """One overlay."""

    origin: str
    """Of its interests."""
    nodes: int
    topics: int
    subscriptions: int
    rounds: int
    liars: float = 0.0
    churn: float = 0.0
    order: str = RingOrder.ID
    warmup: int = 40
    repair: int = 30
    events: int = 5
    has_phones: bool = False
    """Whether nodes are there when phones were."""


def measure_living(plan: LivingPlan, seed: int, around: Surroundings) -> dict[str, int]:
    """Run one overlay. Ratios are in millionths, means in thousandths."""
    interests = interests_of(plan, seed, around)
    scenario = OverlayScenario(
        nodes=len(interests),
        topics=topic_count(interests),
        subscriptions=1,
        liars=plan.liars,
        churn=plan.churn,
        rounds=plan.rounds,
        warmup=plan.warmup,
        repair=plan.repair,
        events=plan.events,
        latency=around.latency,
        config=TrackerlessConfig(ring_order=RingOrder(plan.order)),
        seed=seed,
    )
    attendance = attended(around, plan) if plan.has_phones else None
    return numbers(run_overlay(scenario, interests=interests, attendance=attendance))


def numbers(report: OverlayReport) -> dict[str, int]:
    """A report in whole numbers, without what real time it took."""
    found = {name: round(PPM * getattr(report, name)) for name in _RATIOS}
    found |= {name: round(MILLI * getattr(report, name)) for name in _THOUSANDTHS}
    found |= {name: getattr(report, name) for name in _COUNTS}
    return found | {"trace": int(report.trace_sha256[:16], 16) >> 1}


def interests_of(plan: LivingPlan, seed: int, around: Surroundings) -> Interests:
    """Real ones, or drawn in communities."""
    if plan.origin == SYNTHETIC:
        return drawn_interests(seed, plan.nodes, plan.topics, plan.subscriptions)
    return around.interests[plan.origin][: plan.nodes]


def attended(around: Surroundings, plan: LivingPlan) -> Attendance:
    """When phones were online, in seconds from midday of the first day of their week."""
    weeks = around.weeks[: plan.nodes]
    return [
        [(max(0, start - _MIDDAY) / 1000, (end - _MIDDAY) / 1000) for start, end in week if end > _MIDDAY]
        for week in weeks
    ]
