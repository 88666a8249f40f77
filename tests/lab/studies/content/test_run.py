"""A run as points: what the report of the simulation says, and what its trace does."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from linnet.lab.studies.content import run
from linnet.lab.studies.content.run import (
    DUPLICATED,
    EXPECTED,
    HOPS,
    LATENCY,
    MEMORY,
    MESSAGES,
    MISSING,
    PROCESSOR,
    SUBSCRIBING,
    UNASKED,
    Meter,
    deliveries,
    measure,
    to_arrow,
)
from linnet.lab.studies.content.workload import Case
from linnet.sim.content.rounds import RoundReport, run_rounds
from linnet.sim.content.scenario import ContentReport, ContentScenario, run_content
from linnet.trace.columns import ColumnTrace
from linnet.trace.records import Row

CASE = Case("normal", "base-reliable", 20, 2, 0, 7)


def row(time: float, node: bytes, kind: str, event: bytes | None, hops: int | None = None) -> Row:
    return Row(time, node, 0, kind, None, event, None, None, 1, None, hops, None, None, None)


def test_what_is_missing_double_or_unasked_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """No run in small goes wrong by itself."""

    def worsened(report: ContentReport) -> ContentReport:
        return replace(report, missing=3, duplicates_share=2 / report.expected, false_positives=4)

    def worse(rounds: Iterable[RoundReport]) -> list[RoundReport]:
        return [replace(report, missing=3, duplicated=2, unasked=4) for report in rounds]

    monkeypatch.setattr(run, "run_content", lambda *given: worsened(run_content(*given)))
    monkeypatch.setattr(run, "run_rounds", lambda *given: worse(run_rounds(*given)))
    for case, stages in ((CASE, {0}), (Case("replication", "base-reliable", 15, 1, 0, 7), {1, 2, 3, 4})):
        found = {(stage, metric): value for stage, metric, value, _ in measure(case)}
        assert {stage for stage, _ in found} == stages
        for stage in stages:
            assert [found[stage, metric] for metric in (MISSING, DUPLICATED, UNASKED)] == [3, 2, 4]


def test_latency_is_from_birth_to_the_first_time_at_each_node() -> None:
    rows = [
        row(1.0, b"p", "published", b"e"),
        row(1.02, b"a", "delivered", b"e", 1),
        row(1.03, b"b", "delivered", b"e", 2),
        row(1.04, b"a", "delivered", b"e", 3),
        row(1.05, b"a", "online", None),
    ]
    assert deliveries(iter(rows)) == ({20_000: 1, 30_000: 1}, {1: 1, 2: 1})


def test_points_are_what_the_simulation_reports() -> None:
    points = measure(CASE)
    trace = ColumnTrace()
    report = run_content(ContentScenario(nodes=20, seed=7), trace)
    singles = {metric: value for _, metric, value, _ in points if metric not in (LATENCY, HOPS)}
    assert (singles[EXPECTED], singles[MISSING], singles[DUPLICATED]) == (report.expected, 0, 0)
    assert singles[PROCESSOR] > 0
    assert (singles[MESSAGES], MEMORY in singles) == (report.messages, True)
    assert report.messages > 0
    latencies = {value: count for _, metric, value, count in points if metric == LATENCY}
    assert sum(latencies.values()) == report.expected
    mean = sum(value * count for value, count in latencies.items()) / report.expected
    assert mean / 1000 == pytest.approx(report.mean_latency_ms, abs=0.01)
    assert max(latencies) / 1000 == pytest.approx(report.max_latency_ms, abs=0.01)


def test_a_meter_keeps_what_it_was_last_asked_for() -> None:
    meter = Meter()
    assert (meter.processor, meter.memory) == (0.0, 0)
    taken = b"x" * (64 << 20)
    meter(0.5, "half")
    assert meter.processor > 0.0
    assert meter.memory > len(taken) // 2


def test_rows_carry_their_case() -> None:
    found = to_arrow(CASE, [(0, EXPECTED, 112, 1), (2, LATENCY, 10, 3)]).to_pylist()
    named = {"scenario": "normal", "variant": "base-reliable", "nodes": 20, "f": 2, "repeat": 0}
    assert found == [
        named | {"stage": 0, "metric": EXPECTED, "value": 112, "count": 1},
        named | {"stage": 2, "metric": LATENCY, "value": 10, "count": 3},
    ]


def test_stages_are_measured_one_by_one() -> None:
    points = measure(Case("replication", "base-reliable", 15, 1, 0, 7))
    stages = {stage for stage, *_ in points}
    assert stages == {1, 2, 3, 4}
    for stage in stages:
        found = {metric: value for at, metric, value, _ in points if at == stage}
        assert (found[MISSING], found["unasked"]) == (0, 0)
        assert found[EXPECTED] > 0
        assert found[PROCESSOR] > 0
        assert found[SUBSCRIBING] > 0
        assert found[MESSAGES] > 0
        assert MEMORY in found
        assert LATENCY in found
