"""A tracker's graph and rings without one, on the same nodes, topics, latencies and failures.

Both run on one driver with the same topics above them. Bytes are of messages as they are encoded, without
what links add to them; those of events are counted apart. A tracker's own bytes are shared among the nodes.
"""

from __future__ import annotations

import gc

import msgspec
from msgspec import Struct

from linnet.lab.studies.overlay.data import Surroundings, topic_count
from linnet.lab.studies.overlay.living import MILLI, PPM, LivingPlan, interests_of
from linnet.sim.overlay import snapshot as overlay_state
from linnet.sim.overlay.scenario import OverlayScenario
from linnet.sim.overlay.world import KNOWN, OverlayWorld, TopicWorld, TrackedWorld
from linnet.sim.seeded_random import named_luck

TRACKER, RING = "tracker", "ring"
_EVENTS = ("Data", "Want", "Given", "Beyond", "Further", "Reconcile", "TellHeads")
_CALM = 60
"""Rounds without events in which the cost of being there is measured."""
_SPREAD = 20
"""Rounds in which events are published."""
_ROUNDS = 40
_REPAIRED = 0.9999
_encode = msgspec.msgpack.Encoder().encode


class ChoosingPlan(Struct, frozen=True):
    """One of the two."""

    overlay: str
    living: LivingPlan
    failed: float = 0.1


def measure_choosing(plan: ChoosingPlan, seed: int, around: Surroundings) -> dict[str, int]:
    """Delay, copies, bytes of a node in an hour of silence, and rounds until a failure is mended."""
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
    kind = TrackedWorld if plan.overlay == TRACKER else OverlayWorld
    was_on = gc.isenabled()
    gc.disable()
    try:
        world = kind(scenario, interests, weigh=lambda message: len(_encode(message)))
        return _measured(world, plan, seed)
    finally:
        if was_on:
            gc.enable()


def _measured(world: TopicWorld, plan: ChoosingPlan, seed: int) -> dict[str, int]:
    luck, period = named_luck(seed, "choosing"), world.period
    run, nodes = world.world.run, len(world.nodes)
    run(plan.living.warmup * period)
    joining = _control(world)
    run(world.world.elapsed + _CALM * period)
    calm = _control(world) - joining
    degrees = overlay_state.degrees(world)
    start = world.world.elapsed
    for number in range(_SPREAD):
        for topic in range(number, len(world.topic_ids), 4):
            world.publish(topic, luck)
        run(start + (number + 1) * period)
    meter = world.meter
    copies = sum(topic.copies for node in world.nodes for topic in node.peer.topics.values())
    passed = max(1, meter.passed_on)
    found = {
        "joining_bytes": joining // nodes,
        "hourly_bytes": round(calm / nodes * 3600 / (_CALM * period)),
        "degree": round(MILLI * sum(degrees) / max(1, len(degrees))),
        "delay_ms": round(1000 * meter.delay / passed),
        "hops": round(MILLI * meter.hops / passed),
        "copies": round(MILLI * copies / max(1, meter.handed_over)),
        "hit_ratio": round(PPM * meter.hit_ratio),
    }
    return found | _mended(world, plan, seed)


def _control(world: TopicWorld) -> int:
    """Bytes of all that is not about events, so far."""
    return sum(size for kind, (_, size) in world.world.kinds.items() if kind.__name__ not in _EVENTS)


def _mended(world: TopicWorld, plan: ChoosingPlan, seed: int) -> dict[str, int]:
    luck, run, period = named_luck(seed, "failing"), world.world.run, world.period
    count = round(plan.failed * (len(world.nodes) - KNOWN))
    for number in sorted(luck.sample(range(KNOWN, len(world.nodes)), count)):
        world.leave(world.nodes[number])
    start, repaired, at_once = world.world.elapsed, _ROUNDS, -1
    for number in range(_ROUNDS):
        before = len(world.meter.published)
        run(start + number * period + 1.0)
        for topic in range(len(world.topic_ids)):
            world.publish(topic, luck)
        run(start + (number + 1) * period)
        published = list(world.meter.published.values())[before:]
        expected = sum(len(each.expected) for each in published)
        hits = sum(each.hits for each in published) / expected if expected else 1.0
        at_once = round(PPM * hits) if at_once < 0 else at_once
        if hits >= _REPAIRED:
            repaired = number
            break
    return {
        "hit_ratio_at_once": at_once,
        "repaired_rounds": repaired,
        "causal_violations": world.meter.causal_violations,
        "repeated": world.meter.repeated,
    }
