"""Exact quantiles of delays, against sorted lists."""

from __future__ import annotations

from pyspark.sql import SparkSession
from tests.lab.audit.stage import Staged
from tests.lab.audit.tales import GRACE_US, NEVER, Oracle, Tale

from linnet.core.quantiles import quantile, rank
from linnet.lab.audit.completeness import completeness_of
from linnet.lab.audit.quantiles import PERCENTS, quantiles_of


def test_quantiles_are_those_of_sorted_lists(spark: SparkSession) -> None:
    tale = Tale(62, steps=60)
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
    assert any(_is_alone(delays, percent) for delays in oracle.delays().values() for percent in PERCENTS)
    assert any(us is not None and us % 1000 for us in wanted.values()), "not whole milliseconds alone"


def _is_alone(delays: list[int], percent: int) -> bool:
    """Whether another rank would have been another quantile."""
    place = rank(percent / 100, len(delays)) - 1
    return 0 < place < len(delays) - 1 and delays[place - 1] < delays[place] < delays[place + 1]
