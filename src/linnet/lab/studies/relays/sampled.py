"""Model and protocol on a sample of chats."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from linnet.lab.relays.agreement import Verdict, agreements, verdict
from linnet.lab.relays.margins import MARGINS
from linnet.lab.relays.protocol import protocol_runs
from linnet.lab.relays.windows import cut_windows, sample
from linnet.lab.report.parts import Check, Grid, Section
from linnet.lab.stages import Made, Workshop
from linnet.lab.studies.relays.parameters import RelaysParameters
from linnet.lab.studies.relays.workload import sent
from linnet.lab.tables import AGREEMENTS, PROTOCOL_RUNS, WINDOWS

LEAST = 200
"""Chats of a sample that says something about all; a smaller one is for a quick look."""


def compare_sample(workshop: Workshop, parameters: RelaysParameters, messages: Made, profiles: Made) -> Made:
    """Windows of some chats through the protocol, margin by margin, each held against the model."""
    seed = parameters.seed
    said = sent(messages.frame).withColumn("kind", f.lit(""))
    windows = workshop.stage(
        "windows",
        WINDOWS,
        lambda: cut_windows(
            said, sample(profiles.frame, seed, parameters.sample), seed, parameters.window, parameters.work
        ),
        inputs=[messages, profiles],
        parameters={"chats": parameters.sample, "longest": parameters.window, "work": parameters.work},
        seed=seed,
    )
    # The protocol takes most of the study's time; a stage for each margin loses less if it is cut short.
    runs = [_runs(workshop, windows, margin, seed) for margin in range(1, MARGINS + 1)]
    return workshop.stage(
        "agreements",
        AGREEMENTS,
        lambda: agreements(windows.frame, reduce(DataFrame.union, (each.frame for each in runs))),
        inputs=[windows, *runs],
    )


def _runs(workshop: Workshop, windows: Made, margin: int, seed: int) -> Made:
    return workshop.stage(
        f"protocol{margin}",
        PROTOCOL_RUNS,
        lambda: protocol_runs(windows.frame.where(f.col("margin") == margin), seed, _tasks(windows)),
        inputs=[windows],
        parameters={"margin": margin},
        seed=seed,
    )


def _tasks(windows: Made) -> int:
    """Into how many tasks a margin's runs go: some runs each, so that the longest are not met last."""
    return max(2, min(64, windows.rows // (4 * MARGINS)))


def agreement_check(found: Verdict) -> Check:
    """Model and protocol agree on every delivery that is compared."""
    compared = f"{found.chats} chats, {found.runs} runs, {found.events:,} first deliveries and "
    compared += f"{found.receptions:,} receptions compared"
    return Check(
        id="relays.agreement",
        says="model and protocol give the same times for every delivery of the sample",
        ok=found.runs > 0 and found.differences == 0,
        detail=f"{found.differences:,} differ; {found.first}" if found.first else compared,
    )


def told_of_sample(table: Made, parameters: RelaysParameters) -> tuple[Check, Section]:
    """Whether both agree, and what was looked at."""
    found = verdict(table.frame)
    return agreement_check(found), _section(found, table.frame, parameters)


def _section(found: Verdict, agreements: DataFrame, parameters: RelaysParameters) -> Section:
    """What the sample was and what came of it."""
    strata = (
        agreements.groupBy("stratum", "mode")
        .agg(
            f.countDistinct("chat").alias("chats"),
            f.sum("events").alias("events"),
            f.sum("receptions").alias("receptions"),
            f.sum("backfilled").alias("backfilled"),
            f.sum("differences").alias("differences"),
        )
        .orderBy("stratum", "mode")
        .collect()
    )
    limits = f"{parameters.window} messages, and {parameters.work:,} messages times members"
    fewer = "" if parameters.sample >= LEAST else f" Fewer than {LEAST} chats are only a quick look."
    return Section(
        title="Model and protocol on a sample",
        text=(
            f"{found.chats} chats, as evenly from each class of members and messages as there are some, "
            "were also run through the shipped rooms and relays in simulation, instant by instant, at each "
            f"margin, with relays and without. Windows have at most {limits}; that is this part's own "
            f"limit.{fewer}",
            "Without relays our members also tell each other what they have. What a third brought sooner "
            f"than the sender could is backfilled: {found.backfilled:,} receptions, not compared. Of them "
            f"{found.unforeseen:,} came otherwise than if all who are online always knew the same. "
            f"{found.held:,} receptions waited for an earlier event before the application was told.",
        ),
        grids=(
            Grid(
                title="The sample",
                columns=(
                    "class",
                    "system",
                    "chats",
                    "first deliveries",
                    "receptions",
                    "backfilled",
                    "differ",
                ),
                rows=tuple(tuple(row) for row in strata),
            ),
        ),
    )
