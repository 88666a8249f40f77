"""Exact quantiles of delays, against sorted lists."""

from __future__ import annotations

from pyspark.sql import SparkSession
from tests.lab.audit.stage import Staged
from tests.lab.audit.tales import GRACE_US, NEVER, Oracle, Tale

from linnet.core.quantiles import quantile
from linnet.lab.audit.completeness import completeness_of
from linnet.lab.audit.quantiles import PERCENTS, quantiles_of


def test_quantiles_are_those_of_sorted_lists(spark: SparkSession) -> None:
    tale = Tale(11, steps=150)
    staged, oracle = Staged(spark, tale.rows), Oracle(tale.rows)
    wanted = {
        (*whose, percent): quantile(delays, percent / 100)
        for whose, delays in oracle.delays().items()
        for percent in PERCENTS
    }
    completeness = completeness_of(
        staged.readers, staged.delays, staged.missing(GRACE_US), staged.activity, staged.nodes
    )
    rows = quantiles_of(staged.timed, staged.delays, completeness, staged.nodes).collect()
    found = {(row.topic, row.receiver, row.percent): NEVER if row.us is None else row.us for row in rows}
    assert found == wanted
    assert len(rows) == len(wanted)
    assert NEVER in wanted.values()
    assert any(us is not None and us % 1000 for us in wanted.values()), "not whole milliseconds alone"
