"""Private set intersections: how many a second, beside the multiplications of which they consist.

Processor time of one core that does both sides. The ceiling is what the same core would do if a run were its
multiplications and nothing else: two for each element of either side. Both are taken in turn, in one run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from hashlib import sha256

import msgspec

from bench.results import Measure, Plan
from linnet.core.ids import PeerId, TopicId
from linnet.overlay.gossip.private_set_intersection import (
    BUCKETS,
    RISTRETTO,
    Group,
    Initiator,
    Party,
    Responder,
)
from linnet.overlay.gossip.topic_tags import TopicKeys, topic_keys
from linnet.sim.seeded_random import SeededEntropy
from linnet.sim.signature_cache import IDEAL

SECTION = "intersections"
EPOCH = 2800
MULTIPLY = "multiply a point, beside"
_ONE, _OTHER = PeerId(b"1" * 32), PeerId(b"2" * 32)


def name_of(topics: int) -> str:
    """A run with so many topics on both sides."""
    return f"{topics} topics"


def ceiling_name(topics: int) -> str:
    """Its multiplications alone."""
    return f"{topics} topics, bare multiplications"


@cache
def keys_of(topics: int) -> tuple[list[TopicKeys], list[TopicKeys]]:
    """Topics of two nodes, half of them in common: they have them before they meet."""
    numbered = [topic_keys(TopicId(sha256(b"%d" % each).digest())) for each in range(topics + topics // 2)]
    return numbered[:topics], numbered[topics // 2 :]


def intersect(group: Group, topics: int) -> tuple[int, int]:
    """One run, both sides: how many topics are in common, and the bytes that were sent."""
    ours, theirs = keys_of(topics)
    entropy = SeededEntropy(1, "intersections")
    asking = Initiator(Party(_ONE, group, entropy), _OTHER, ours, EPOCH)
    answering = Responder(Party(_OTHER, group, entropy), _ONE, theirs, asking.message)
    end = asking.handle_answer(answering.message)
    last, common = answering.handle_end(end)
    if set(common) != set(asking.handle_end(last)):
        raise RuntimeError("the two sides do not agree")
    sent = (asking.message, answering.message, end, last)
    return len(common), sum(len(msgspec.msgpack.encode(message)) for message in sent)


def rate(action: Callable[[], object], seconds: float) -> float:
    """Calls for each second of processor time; at least one."""
    calls, started = 0, time.process_time()
    while (spent := time.process_time() - started) < seconds or not calls:
        action()
        calls += 1
    return calls / spent


def multiply_rate(seconds: float) -> float:
    """Multiplications for each second of processor time, by the library's own function."""
    entropy = SeededEntropy(1, "multiply")
    secret, point = RISTRETTO.scalar(entropy), RISTRETTO.hash_to_group(b"a point")

    def some() -> None:
        for _ in range(16):
            RISTRETTO.multiply(secret, point)

    return 16 * rate(some, seconds)


def measure(plan: Plan) -> list[Measure]:
    """All of it."""
    runs: dict[int, list[float]] = {topics: [] for topics in BUCKETS}
    bare: list[float] = []
    ideal: list[float] = []
    for _ in range(plan.runs):
        for topics, rates in runs.items():
            rates.append(rate(lambda topics=topics: intersect(RISTRETTO, topics), plan.seconds))  # type: ignore[misc]
        bare.append(multiply_rate(plan.seconds))
        ideal.append(rate(lambda: intersect(IDEAL, BUCKETS[0]), plan.seconds))
    taken = [Measure(SECTION, MULTIPLY, "1/s", tuple(bare), "libsodium, ristretto255")]
    for topics, rates in runs.items():
        note = f"both sides on one core, {intersect(IDEAL, topics)[1]:,} bytes in four messages"
        taken.append(Measure(SECTION, name_of(topics), "runs/s", tuple(rates), note))
        ceiling = tuple(each / (4 * topics) for each in bare)
        taken.append(Measure(SECTION, ceiling_name(topics), "runs/s", ceiling, f"{4 * topics} of them"))
    note = "the stand-in of simulations, same messages"
    return [*taken, Measure(SECTION, f"{name_of(BUCKETS[0])}, ideal group", "runs/s", tuple(ideal), note)]
