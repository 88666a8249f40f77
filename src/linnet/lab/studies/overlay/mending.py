"""What happens when many fail at once, when a network is cut and healed, and how long it takes to join."""

from __future__ import annotations

import gc

from msgspec import Struct

from linnet.lab.studies.overlay.data import Surroundings, topic_count
from linnet.lab.studies.overlay.living import MILLI, PPM, LivingPlan, interests_of
from linnet.sim.overlay import snapshot as overlay_state
from linnet.sim.overlay.scenario import OverlayScenario
from linnet.sim.overlay.world import KNOWN, WINDOW, OverlayWorld
from linnet.sim.seeded_random import named_luck

FAILURE, PARTITION, JOIN = "failure", "partition", "join"
_ROUNDS = 40
"""Rounds after which something that has not come about is taken not to."""
_REPAIRED = 0.9999


class MendingPlan(Struct, frozen=True):
    """One disturbance of an overlay that had come to rest."""

    kind: str
    living: LivingPlan
    share: float = 0.0
    """Of nodes that fail, or that join late."""
    apart: int = 20
    """Rounds that a partition lasts."""


class Disturbed:
    """An overlay that has come to rest, and what is done to it."""

    def __init__(self, plan: MendingPlan, seed: int, around: Surroundings) -> None:
        self.plan = plan
        interests = interests_of(plan.living, seed, around)
        scenario = OverlayScenario(
            nodes=len(interests),
            topics=topic_count(interests),
            subscriptions=1,
            liars=0.0,
            churn=0.0,
            latency=around.latency,
            seed=seed,
        )
        self.luck = named_luck(seed, f"mending/{plan.kind}")
        self.rest = plan.living.warmup * scenario.config.period
        late = self.luck.sample(range(KNOWN, len(interests)), round(plan.share * (len(interests) - KNOWN)))
        self.late = sorted(late)
        starts = dict.fromkeys(self.late, self.rest + 1.0) if plan.kind == JOIN else {}
        self.world = OverlayWorld(scenario, interests, starts)
        self.world.run(self.rest)
        self.period = scenario.config.period

    def publish(self) -> None:
        """One event in every topic."""
        for topic in range(len(self.world.topic_ids)):
            self.world.publish(topic, self.luck)

    def hits(self, since: int) -> float:
        """Of the events after so many, pairs that were reached in time."""
        published = list(self.world.meter.published.values())[since:]
        expected = sum(len(each.expected) for each in published)
        return sum(each.hits for each in published) / expected if expected else 1.0


def measure_mending(plan: MendingPlan, seed: int, around: Surroundings) -> dict[str, int]:
    """Run one disturbance. Ratios in millionths, times in thousandths of a round or of a second."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        disturbed = Disturbed(plan, seed, around)
        if plan.kind == FAILURE:
            return _failed(disturbed)
        return _parted(disturbed) if plan.kind == PARTITION else _joined(disturbed)
    finally:
        if was_on:
            gc.enable()


def _failed(disturbed: Disturbed) -> dict[str, int]:
    """So many nodes are gone at once: what reaches the others in each round from then on."""
    world, run = disturbed.world, disturbed.world.world.run
    for number in disturbed.late:
        world.leave(world.nodes[number])
    start, first, repaired = world.world.elapsed, None, _ROUNDS
    for number in range(_ROUNDS):
        before = len(world.meter.published)
        # A second: the links of those who are gone are seen to be closed.
        run(start + number * disturbed.period + 1.0)
        disturbed.publish()
        run(start + number * disturbed.period + 1.0 + min(WINDOW, disturbed.period - 1.0))
        hits = disturbed.hits(before)
        first = hits if first is None else first
        if hits >= _REPAIRED and overlay_state.connected(world) == 1.0:
            repaired = number
            break
    run(world.world.elapsed + 30 * disturbed.period)
    there = [[number for number in numbers if world.nodes[number].up] for numbers in world.members]
    return {
        "hit_ratio_at_once": round(PPM * (first or 0.0)),
        "repaired_rounds": repaired,
        "hit_ratio_after_repair": round(PPM * world.meter.repaired(map(world.peers, there))),
        "rings_right": round(PPM * overlay_state.rings_right(world)),
        "causal_violations": world.meter.causal_violations,
        "repeated": world.meter.repeated,
    }


def _parted(disturbed: Disturbed) -> dict[str, int]:
    """Two halves cannot hear each other, and both go on; then they can."""
    world, run = disturbed.world, disturbed.world.world.run
    half = world.peers([number for number in range(len(world.nodes)) if number % 2])
    start = world.world.elapsed
    world.world.partition([half])
    for number in range(1, disturbed.plan.apart + 1):
        run(start + number * disturbed.period)
        if number % 5 == 0:
            disturbed.publish()
    before = world.meter.repaired(map(world.peers, world.members))
    world.world.heal()
    healed, whole = world.world.elapsed, float(_ROUNDS * disturbed.period)
    while world.world.elapsed < healed + _ROUNDS * disturbed.period:
        run(world.world.elapsed + 2.0)
        if world.meter.repaired(map(world.peers, world.members)) == 1.0:
            whole = world.world.elapsed - healed
            break
    return {
        "had_before": round(PPM * before),
        "whole_after_ms": round(MILLI * whole),
        "hit_ratio_after_repair": round(PPM * world.meter.repaired(map(world.peers, world.members))),
        "connected_topics": round(PPM * overlay_state.connected(world)),
        "causal_violations": world.meter.causal_violations,
        "repeated": world.meter.repeated,
    }


def _joined(disturbed: Disturbed) -> dict[str, int]:
    """Newcomers with nothing but two addresses: seconds until they have a neighbour in each topic."""
    world, run = disturbed.world, disturbed.world.world.run
    run(disturbed.rest + 2.0)
    began = disturbed.rest + 1.0
    run(began + _ROUNDS * disturbed.period)
    start = world.world.now - world.world.elapsed
    found: dict[str, list[float]] = {"small": [], "middle": [], "large": []}
    pairs = 0
    for number in disturbed.late:
        node = world.nodes[number]
        for topic in node.topics:
            if len(world.members[topic]) < 2:
                continue
            pairs += 1
            met = world.meter.first_up.get((node.identity.peer, world.topic_ids[topic]))
            if met is not None:
                size = len(world.members[topic])
                name = "small" if size < 10 else "middle" if size < 40 else "large"
                found[name].append(met - start - began)
    return {
        "pairs": pairs,
        "met": sum(map(len, found.values())),
        **{f"join_ms_{name}": _median_ms(times) for name, times in found.items() if times},
        **{f"joins_{name}": len(times) for name, times in found.items() if times},
        "rings_right": round(PPM * overlay_state.rings_right(world)),
    }


def _median_ms(times: list[float]) -> int:
    return round(MILLI * sorted(times)[len(times) // 2])
