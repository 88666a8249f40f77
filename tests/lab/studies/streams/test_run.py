"""Tasks of Spark against the same work in a plain loop."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from linnet.lab.studies.streams.graphs import GROWN, LATTICE, SAMPLED, measure_graph, pair_counts
from linnet.lab.studies.streams.run import Measures, modelled, neighbored, simulate, simulated
from linnet.lab.studies.streams.workload import Case
from linnet.lab.tables import STREAM_COUNTS
from linnet.sim.links import aws_latency

AWS = aws_latency()


def rows_of(case: Case, measures: Measures) -> set[tuple[str, int, int, int, str, int, int]]:
    return {
        (case.mode, case.size, case.degree, case.repeat, measure, bin, count)
        for measure, bins in measures.items()
        for bin, count in bins.items()
    }


def agrees(frame: DataFrame, expected: set[tuple[str, int, int, int, str, int, int]]) -> None:
    found = [tuple(row) for row in frame.collect()]
    assert set(found) == expected
    assert len(found) == len(expected)
    assert frame.groupBy(*STREAM_COUNTS.grain).count().where("count > 1").count() == 0


def test_simulations_in_tasks_are_those_of_a_plain_loop(spark: SparkSession) -> None:
    cases = [
        Case("counter", size, 4, repeat, 11 + repeat, messages=3) for size in (12, 8) for repeat in (0, 1)
    ]
    expected = set().union(*(rows_of(case, simulate(case, AWS)) for case in cases))
    agrees(simulated(spark, cases, AWS), expected)
    assert {measure for *_, measure, _, _ in expected} >= {"delay", "delay_ms", "hops", "degrees", "trace"}
    traced = {row[3] for row in expected if row[4] == "trace"}
    assert traced == {0}  # the first repeat tells its hash


def test_graphs_in_tasks_are_those_of_a_plain_loop(spark: SparkSession) -> None:
    cases = [Case(GROWN, 30, 4, 0, 5), Case(LATTICE, 16, 4, 0, 5), Case(SAMPLED, 40, 4, 1, 6, sources=3)]
    expected = set().union(
        *(
            rows_of(case, measure_graph(case.mode, case.size, case.degree, case.seed, AWS, case.sources))
            for case in cases
        )
    )
    agrees(modelled(spark, cases, AWS), expected)


def test_pairs_are_added_up_over_tasks(spark: SparkSession) -> None:
    seeds = list(range(40))
    expected = pair_counts(9, 4, seeds)
    found = {(row.a, row.b): row.graphs for row in neighbored(spark, 9, 4, seeds).collect()}
    assert found == {(a, b): expected[a, b] for a in range(9) for b in range(a + 1, 9)}
