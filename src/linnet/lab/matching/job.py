"""Matching at scale: from parameters to a report."""

from __future__ import annotations

import hashlib

from msgspec import Struct
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from linnet.content.predicate import MOST_ATTRIBUTES, read_attributes
from linnet.lab.manifest import Origin
from linnet.lab.matching.columns import EVENTS, HOMES, MATCHES, PAIRS, PLACED, PREDICATES, RECORDS, WRITTEN
from linnet.lab.matching.homes import Plan, Rarity, make_plan
from linnet.lab.matching.oracle import Sample, differences, oracle_of, pairs_of
from linnet.lab.matching.parameters import MatchParameters
from linnet.lab.matching.pieces import homes_of, matches_of, placed_of, routed_of, settlements_of
from linnet.lab.matching.plain_join import plain_pairs, written_of
from linnet.lab.matching.streams import Harvest
from linnet.lab.matching.subscribing import widths_of
from linnet.lab.matching.told import Beside, Found, report_of
from linnet.lab.matching.workload import events_frame, harvest_of, predicates_frame, records_frame
from linnet.lab.report.parts import Report
from linnet.lab.stages import Made, Workshop

RARITY_SAMPLE = 5_000
"""Events by which it is told how rare a condition is."""
MOST_TASKS = 64


class Workload(Struct, frozen=True):
    """What is matched."""

    events: Made
    predicates: Made
    harvest: Harvest


def match(workshop: Workshop, parameters: MatchParameters) -> Report:
    """Run what is still missing, and say what came of it."""
    parameters = parameters.checked()
    workload = make_workload(workshop, parameters)
    found = run(workshop, "", workload.events, workload.predicates, parameters)
    sampled = sample_of(workload.events.frame, parameters)
    oracle = workshop.stage(
        "oracle",
        PAIRS,
        lambda: oracle_of(workload.predicates.frame, sampled),
        inputs=[workload.events, workload.predicates],
        parameters={"sample": parameters.sample},
    )
    numbers = [number for number, _ in sampled]
    ours = pairs_of(found.matches.frame.where(F.col("event").isin(*numbers)))
    wrong = differences(ours, oracle.frame)
    beside = beside_plain(workshop, workload, parameters) if parameters.plain else None
    workshop.tell("report")
    copies = [len(found.plan.of_event(attributes)) for _, attributes in sampled]
    told = Found(
        records=len(workload.harvest.records),
        missing=workload.harvest.missing,
        unread=workload.harvest.unread,
        pairs=_total(found.matches.frame),
        pieces=found.plan.pieces,
        placed=found.placed.rows,
        largest=_largest(found.placed.frame),
        event_copies=sum(copies) / len(copies),
        sampled=len(sampled),
        sampled_pairs=oracle.rows,
        wrong=wrong,
        beside=beside,
    )
    return report_of(parameters, told, workshop.costs)


def make_workload(workshop: Workshop, parameters: MatchParameters) -> Workload:
    """Records, events and subscriptions."""
    harvest, seed = harvest_of(parameters.data, parameters.seed), parameters.seed
    number, widths = len(harvest.records), widths_of(harvest.records)
    digest = hashlib.sha256("\n".join(found.text for _, found in harvest.records).encode()).hexdigest()
    records = workshop.stage(
        "records",
        RECORDS,
        lambda: records_frame(workshop.spark, harvest),
        inputs=[Origin("streams", digest)],
    )
    events = workshop.stage(
        "events",
        EVENTS,
        lambda: events_frame(records.frame, parameters.events, number, seed),
        inputs=[records],
        parameters={"count": parameters.events},
        seed=seed,
    )
    predicates = workshop.stage(
        "subscriptions",
        PREDICATES,
        lambda: predicates_frame(records.frame, parameters.subscriptions, number, widths, seed),
        inputs=[records],
        parameters={"count": parameters.subscriptions},
        seed=seed,
    )
    return Workload(events, predicates, harvest)


class Ran(Struct, frozen=True):
    """One run of the matcher."""

    plan: Plan
    placed: Made
    matches: Made


def run(workshop: Workshop, prefix: str, events: Made, predicates: Made, parameters: MatchParameters) -> Ran:
    """Homes, pieces, matches: the three stages of the matcher."""
    told = {"capacity": parameters.capacity}
    rarity = Rarity([found for _, found in _first(events.frame, RARITY_SAMPLE)])
    homes = workshop.stage(
        f"{prefix}homes", HOMES, lambda: homes_of(predicates.frame, rarity), inputs=[predicates, events]
    )
    plan = make_plan(settlements_of(homes.frame), parameters.capacity)
    placed = workshop.stage(
        f"{prefix}placed", PLACED, lambda: placed_of(homes.frame, plan), inputs=[homes], parameters=told
    )
    tasks = max(1, min(plan.pieces, MOST_TASKS))
    matches = workshop.stage(
        f"{prefix}matches",
        MATCHES,
        lambda: matches_of(placed.frame, routed_of(events.frame, plan), tasks),
        inputs=[placed, events],
    )
    return Ran(plan, placed, matches)


def _first(events: DataFrame, count: int) -> Sample:
    """The events of the lowest numbers: what they say was drawn for each by itself, so they are a sample."""
    rows = events.where(F.col("event") < count).orderBy("event").collect()
    return [(row.event, read_attributes(row.attributes, MOST_ATTRIBUTES)) for row in rows]


def sample_of(events: DataFrame, parameters: MatchParameters) -> Sample:
    """Events that are matched in both ways, evenly spread."""
    every = max(1, parameters.events // parameters.sample)
    rows = events.where(F.col("event") % every == 0).orderBy("event").limit(parameters.sample).collect()
    return [(row.event, read_attributes(row.attributes, MOST_ATTRIBUTES)) for row in rows]


def beside_plain(workshop: Workshop, workload: Workload, parameters: MatchParameters) -> Beside:
    """The plain join in two sizes, and the matcher in the larger, on the first events and predicates."""
    size = min(parameters.plain, parameters.events, parameters.subscriptions)
    small = max(1, size // 2)
    events, predicates = _few(workshop, workload, size)
    said = workshop.stage("plain-events", WRITTEN, lambda: written_of(events.frame), inputs=[events])
    asked = workshop.stage(
        "plain-subscriptions", WRITTEN, lambda: written_of(predicates.frame), inputs=[predicates]
    )
    workshop.stage(
        "half-plain",
        PAIRS,
        lambda: plain_pairs(said.frame.where(F.col("id") < small), asked.frame.where(F.col("id") < small)),
        inputs=[said, asked],
        parameters={"count": small},
    )
    joined = workshop.stage(
        "plain", PAIRS, lambda: plain_pairs(said.frame, asked.frame), inputs=[said, asked]
    )
    ours = run(workshop, "few-", events, predicates, parameters)
    wrong = differences(pairs_of(ours.matches.frame), joined.frame)
    return Beside(size=size, small=small, pairs=joined.rows, wrong=wrong)


def _few(workshop: Workshop, workload: Workload, size: int) -> tuple[Made, Made]:
    told = {"count": size}
    events, predicates = workload.events, workload.predicates
    return (
        workshop.stage(
            "few-events",
            EVENTS,
            lambda: events.frame.where(F.col("event") < size).repartition(4, "event"),
            inputs=[events],
            parameters=told,
        ),
        workshop.stage(
            "few-subscriptions",
            PREDICATES,
            lambda: predicates.frame.where(F.col("subscription") < size).coalesce(1),
            inputs=[predicates],
            parameters=told,
        ),
    )


def _total(matches: DataFrame) -> int:
    row = matches.agg(F.sum(F.size("subscriptions"))).collect()[0]
    return int(row[0] or 0)


def _largest(placed: DataFrame) -> int:
    row = placed.groupBy("piece").count().agg(F.max("count")).collect()[0]
    return int(row[0] or 0)
