"""Synthetic traces hold what they promise, and an audit finds exactly that."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from linnet.lab.audit.audit import audit
from linnet.lab.audit.pipeline import Parameters
from linnet.lab.audit.synthetic import Expected, Shape, expected, synthetic_trace
from linnet.lab.stages import Workshop

SHAPE = Shape(topics=2, readers=5, authors=2, events=300, lost_each=101, dropped_each=47)


def test_an_audit_finds_what_was_hidden(spark: SparkSession, tmp_path: Path) -> None:
    trace = synthetic_trace(spark, SHAPE, parts=2)
    trace.write.parquet(str(tmp_path / "trace"))
    findings = audit(Workshop(spark, tmp_path / "out"), [tmp_path / "trace"], Parameters()).findings
    assert findings.rows == SHAPE.rows
    assert findings.holes == 0
    names = ("published", "owed", "delivered", "lost", "explained", "duplicates")
    assert Expected(*(findings.total(name) for name in names)) == expected(SHAPE)
    assert expected(SHAPE).lost == 18
    assert {wrong.reason: wrong.events for wrong in findings.wrong} == {"queue_full": 38}


def test_the_same_shape_gives_the_same_rows(spark: SparkSession) -> None:
    small = Shape(topics=2, readers=3, authors=1, events=20)
    sums = [
        synthetic_trace(spark, small, parts).agg(F.sum(F.xxhash64("*").cast("decimal(38,0)"))).first()
        for parts in (1, 5)
    ]
    assert sums[0] == sums[1]


def test_seeds_differ(spark: SparkSession) -> None:
    one, other = (
        synthetic_trace(spark, Shape(topics=1, readers=2, authors=1, events=5, seed=seed)) for seed in (1, 2)
    )
    assert one.select("event").subtract(other.select("event")).count() == 5
