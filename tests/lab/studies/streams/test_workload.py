"""Which simulations are run, and in which order."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from linnet.lab.studies.streams.graphs import GROWN, KINDS, SAMPLED
from linnet.lab.studies.streams.parameters import (
    AT_ONCE,
    AWARE,
    COUNTER,
    HELD,
    LIVE,
    NAIVE,
    PLAIN,
    StreamsParameters,
)
from linnet.lab.studies.streams.workload import (
    COLUMNS,
    Case,
    beside_cases,
    cases_frame,
    graph_cases,
    large_cases,
    main_cases,
    redundancy_cases,
    scenario_of,
    seed_of,
)
from linnet.overlay.config import Control
from linnet.sim.links import aws_latency

WHOLE = StreamsParameters()
AWS = aws_latency()


def test_modes_share_the_seeds_of_their_repeats() -> None:
    counter, naive = (main_cases(WHOLE, mode, 64) for mode in (COUNTER, NAIVE))
    assert [case.seed for case in counter] == [case.seed for case in naive]
    assert len({case.seed for case in counter}) == 10
    assert seed_of(1, "a", 0) != seed_of(2, "a", 0)


def test_naive_is_throttled_above_1000_nodes_and_measured_at_120_seconds() -> None:
    at_once, throttled = (scenario_of(main_cases(WHOLE, NAIVE, size)[0], AWS) for size in (512, 2048))
    assert (at_once.control, at_once.join, at_once.still) == (Control.NAIVE, 0.0, True)
    assert 1 + at_once.settle_limit == 120
    assert throttled.join == 0.05
    assert 1 + 2047 * throttled.join + throttled.settle_limit == 120
    assert [(case.mode, case.size, case.join_ms) for case in beside_cases(WHOLE)] == [
        (AT_ONCE, 1024, 0),
        *[(LIVE, 128, 0)] * 3,
    ]
    assert not scenario_of(beside_cases(WHOLE)[-1], AWS).still


def test_counters_need_no_stilled_tracker_and_aware_ones_do() -> None:
    counter, aware = (scenario_of(main_cases(WHOLE, mode, 64)[0], AWS) for mode in (COUNTER, AWARE))
    assert (counter.still, counter.near, counter.messages) == (False, False, 50)
    assert (aware.still, aware.near, aware.settle_limit) == (True, True, 44.0)
    assert counter.gap == pytest.approx(2 * 0.06864, rel=0.001)


def test_redundancy_is_run_with_and_without_suppression_for_every_degree() -> None:
    cases = redundancy_cases(WHOLE)
    assert {(case.mode, case.degree) for case in cases} == {
        (mode, degree) for mode in (PLAIN, HELD) for degree in range(4, 17, 2)
    }
    assert {scenario_of(case, AWS).suppress for case in cases if case.mode == HELD} == {0.05}
    assert {scenario_of(case, AWS).suppress for case in cases if case.mode == PLAIN} == {0.0}
    assert redundancy_cases(StreamsParameters(degrees=())) == []


def test_graphs_are_of_every_kind_and_the_largest_come_first() -> None:
    cases = graph_cases(WHOLE)
    assert {(case.mode, case.size) for case in cases if case.degree == 4} == {
        (kind, size) for kind in KINDS for size in WHOLE.sizes
    }
    assert {case.degree for case in cases if case.size == 512 and case.mode == GROWN} == {*range(4, 17, 2)}
    assert cases[0].size == 2048
    assert [case.size for case in large_cases(WHOLE)] == [10_000] * 3 + [6400] * 3 + [4096] * 3
    assert {case.mode for case in large_cases(WHOLE)} == {SAMPLED}
    assert max(case.size for case in large_cases(StreamsParameters(large=100_000))) == 100_000
    assert large_cases(StreamsParameters(large=0)) == []


def test_cases_become_rows_each_in_a_task_of_its_own(spark: SparkSession) -> None:
    cases = [Case("counter", size, 4, repeat, 1 << 31, 50, 7, 3) for size in (64, 32) for repeat in range(3)]
    frame = cases_frame(spark, cases)
    assert [Case(**row.asDict()) for row in frame.collect()] == cases
    assert frame.rdd.getNumPartitions() == len(cases)
    assert [f"{name} {kind}".upper() for name, kind in frame.dtypes] == [
        column.removesuffix(" NOT NULL").upper() for column in COLUMNS.split(", ")
    ]
