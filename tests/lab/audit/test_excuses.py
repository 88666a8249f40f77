"""Which records speak of which event: by blocks as by looking at every pair, and with less work."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.conftest import SOAK

from linnet.core.reasons import Reason
from linnet.lab.audit.excuses import AT_RECEIVER, ELSEWHERE, meetings_of, with_excuses
from linnet.trace.records import Kind

GRACE_US = 10
PAIRS = (
    "chain INT, topic BINARY, device BINARY, seq BIGINT, author INT, published_us BIGINT, event BINARY, "
    "served BIGINT, receiver INT"
)
EXCUSES = (
    "by INT, topic BINARY, device BINARY, first BIGINT, last BIGINT, named BINARY, kind STRING, "
    "reason STRING, said_us BIGINT"
)
DEVICES = (b"d" * 8, b"e" * 8)
NODES = 4
FAR = 1 << 61

Pair = tuple[int, bytes, bytes, int, int, int, bytes | None, int, int]
Excuse = tuple[int, bytes, bytes | None, int | None, int | None, bytes | None, str, str | None, int]


class Case:
    """A topic of its own with a few events that readers lack, and what was said of them."""

    def __init__(self, seed: int) -> None:
        self.luck = luck = Random(seed)
        self.topic = seed.to_bytes(8)
        self.begin = luck.choice((0, 0, 5, FAR))
        self.places = luck.choice((1, 6, 40))
        self.pairs = [
            (2 * seed + which, self.topic, device, self.begin + place, author, time, event, served, receiver)
            for which, device in enumerate(DEVICES)
            for place in range(self.places)
            for author, time, event, served in [self.event(which, place)]
            for receiver in range(NODES)
            if luck.random() < 0.5
        ]
        self.excuses = [self.excuse() for _ in range(luck.choice((0, 3, 30)))]

    def event(self, which: int, place: int) -> tuple[int, int, bytes | None, int]:
        luck = self.luck
        name = bytes([which, place]) * 16 if luck.random() < 0.7 else None
        return luck.randrange(NODES), luck.randrange(100), name, luck.choice((0, 0, 2))

    def excuse(self) -> Excuse:
        luck = self.luck
        first: int | None = self.begin + luck.randrange(-3, self.places) if luck.random() < 0.8 else None
        first = max(0, first) if first is not None else None
        length = luck.choice((0, 1, 1, 2, 3, 7, 8, 33, FAR))
        kind = luck.choice(AT_RECEIVER)
        reasons = (None, Reason.QUEUE_FULL.value, Reason.SUBSCRIBER_SLOW.value)
        return (
            luck.randrange(NODES),
            self.topic,
            luck.choice((*DEVICES, None)),
            first,
            None if first is None else first + length - 1,
            bytes([luck.randrange(2), luck.randrange(self.places)]) * 16 if luck.random() < 0.3 else None,
            kind.value,
            luck.choice(reasons) if luck.random() < 0.3 else None,
            luck.randrange(100),
        )

    def wanted(self) -> Iterator[tuple[Pair, tuple[str, str | None] | None]]:
        """By looking at every pair and every record, as the fates are defined."""
        for pair in self.pairs:
            said = [
                (kind != Kind.STORED.value, kind, reason is not None, reason or "")
                for by, _, device, first, last, named, kind, reason, us in self.excuses
                if speaks_of(pair, by, device, first, last, named, kind)
                or (reason == Reason.SUBSCRIBER_SLOW and by == pair[8] and pair[5] >= us - GRACE_US)
            ]
            best = min(said, default=None)
            yield pair, None if best is None else (best[1], best[3] if best[2] else None)


def speaks_of(
    pair: Pair,
    by: int,
    device: bytes | None,
    first: int | None,
    last: int | None,
    named: bytes | None,
    kind: str,
) -> bool:
    _, _, of, seq, author, _, event, served, receiver = pair
    in_place = device == of and first is not None and last is not None and first <= seq <= last
    by_name = event is not None and named == event
    last_hand = (by == author or served == 0) and kind in ELSEWHERE
    return (in_place or by_name) and (by == receiver or last_hand)


def frames(spark: SparkSession, cases: list[Case]) -> tuple[DataFrame, DataFrame]:
    pairs = [pair for case in cases for pair in case.pairs]
    excuses = [excuse for case in cases for excuse in case.excuses]
    return spark.createDataFrame(pairs, PAIRS), spark.createDataFrame(excuses, EXCUSES)


def test_excuses_are_those_of_whoever_looks_at_every_pair(spark: SparkSession) -> None:
    cases = [Case(seed) for seed in range(2_000 if SOAK else 40)]
    rows = with_excuses(*frames(spark, cases), GRACE_US).collect()
    found = {(row.chain, row.seq, row.receiver): row.kind and (row.kind, row.reason) for row in rows}
    wanted = {(pair[0], pair[3], pair[8]): said for case in cases for pair, said in case.wanted()}
    assert found == wanted
    assert len(rows) == len(wanted)
    assert {said[0] for said in wanted.values() if said} == {kind.value for kind in AT_RECEIVER}
    assert None in wanted.values()


def crowd(readers: int, events: int) -> tuple[list[Pair], list[Excuse]]:
    """One chain of which nobody was handed anything, and every reader says so of all that came before too."""
    topic, device = b"t" * 32, DEVICES[0]
    names = [seq.to_bytes(32) for seq in range(events)]
    pairs: list[Pair] = [
        (0, topic, device, seq, 0, seq, names[seq], 0, receiver)
        for seq in range(events)
        for receiver in range(1, readers)
    ]
    excuses: list[Excuse] = [
        (receiver, topic, device, first, seq, names[seq], kind.value, Reason.QUEUE_FULL.value, seq)
        for seq in range(events)
        for receiver in range(readers)
        for first, kind in ((0, Kind.DROPPED), (seq, Kind.DROPPED), (seq, Kind.STORED))
    ]
    return pairs, excuses


@pytest.mark.parametrize(("readers", "events"), [(3, 400), (40, 30)])
def test_a_pair_meets_few_records_however_many_there_are(
    spark: SparkSession, readers: int, events: int
) -> None:
    pairs, excuses = crowd(readers, events)
    lengths = events.bit_length()
    told = spark.createDataFrame(pairs, PAIRS), spark.createDataFrame(excuses, EXCUSES)
    met = meetings_of(*told).count()
    assert len(pairs) <= met <= 3 * (lengths + 1) * len(pairs)


def joins(plan: Any) -> Iterator[Any]:  # noqa: ANN401 (py4j has no types)
    if plan.getClass().getSimpleName() == "Join":
        yield plan
    for place in range(plan.children().size()):
        yield from joins(plan.children().apply(place))


def conjuncts(condition: Any) -> Iterator[str]:  # noqa: ANN401 (py4j has no types)
    if condition.getClass().getSimpleName() == "And":
        yield from conjuncts(condition.left())
        yield from conjuncts(condition.right())
    else:
        yield condition.getClass().getSimpleName()


def test_everything_meets_by_equality(spark: SparkSession) -> None:
    """A range as a condition of a join compares every loss of a chain with every record of it."""
    plan = with_excuses(*frames(spark, [Case(1)]), GRACE_US)._jdf.queryExecution().optimizedPlan()
    found = list(joins(plan))
    assert len(found) == 4
    for join in found:
        if join.condition().isDefined():
            assert set(conjuncts(join.condition().get())) <= {"EqualTo", "EqualNullSafe"}
        else:  # one number beside every row
            assert join.right().maxRows().get() == 1
