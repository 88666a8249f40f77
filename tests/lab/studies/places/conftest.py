"""Random logs of many places, looked at by every job in one session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession

from linnet.lab.studies.places import answers, findings, folding, line, reading, reassembly, reference, spoken

SEED, LOGS = 7, 200


class Looked(NamedTuple):
    """The tables of all random logs."""

    units: DataFrame
    fragments: DataFrame
    taken: DataFrame
    parsed: DataFrame
    ours: DataFrame
    theirs: DataFrame
    truths: DataFrame


@contextmanager
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Without compiled stages: of small tables each is used once, and compiling takes longest."""
    name = "spark.sql.codegen.wholeStage"
    before = spark.conf.get(name)
    spark.conf.set(name, "false")
    yield
    spark.conf.set(name, before or "true")


@pytest.fixture(scope="session")
def looked(spark: SparkSession) -> Looked:
    with interpreted(spark):
        units = spoken.units_of(spark, SEED, LOGS, 2).cache()
        fragments = reading.fragments_of(units, SEED).cache()
        taken = line.taken(fragments).cache()
        parsed = reassembly.parsed_of(reassembly.messages_of(taken)).cache()
        intervals = folding.intervals_of(folding.steps_of(parsed)).cache()
        ours = answers.answers_of(fragments, taken, parsed, intervals).cache()
        theirs = reference.reference_of(units, SEED).cache()
        truths = findings.truths_of(spark, SEED, LOGS, 2).cache()
        for frame in (units, taken, parsed, intervals, ours, theirs, truths):
            frame.count()
    return Looked(units, fragments, taken, parsed, ours, theirs, truths)
