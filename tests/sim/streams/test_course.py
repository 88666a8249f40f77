"""Whole streams in simulation: what section 5 of the thesis says of flooding, on the shipped machines."""

from __future__ import annotations

import json

import msgspec
import pytest

from linnet.overlay.config import Control
from linnet.sim.streams.course import StreamReport, run_streams
from linnet.sim.streams.world import StreamScenario
from linnet.testing.networks import RowTrace
from linnet.trace.records import Kind

SEEDS = (1, 2, 3)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("nodes", "degree"), [(32, 4), (48, 6)])
def test_a_flood_costs_and_takes_what_theory_says(nodes: int, degree: int, seed: int) -> None:
    report = run_streams(StreamScenario(nodes, degree, messages=10, seed=seed))
    assert (report.degree_min, report.degree_max, report.regular) == (degree, degree, True)
    assert report.completeness == 1.0
    assert report.messages == 10
    assert report.sends_per_message == nodes * degree - (nodes - 1)
    assert report.duplicates_per_message == report.sends_per_message - (nodes - 1)
    assert report.mean_delay_ms == pytest.approx(report.estimate_ms, rel=0.001)
    assert report.p99_delay_ms >= report.mean_delay_ms
    assert report.mean_hops <= report.max_hops < nodes


def test_constant_latency_counts_hops() -> None:
    report = run_streams(StreamScenario(24, latency="constant:10", messages=5))
    assert report.mean_delay_ms == pytest.approx(10 * report.mean_hops, rel=0.001)
    assert report.mean_edge_delay_ms == pytest.approx(10)
    assert report.pair_mean_delay_ms == pytest.approx(10)


def test_few_nodes_form_a_complete_graph() -> None:
    report = run_streams(StreamScenario(nodes=4, messages=4))
    assert (report.degree_min, report.degree_max, report.completeness) == (3, 3, 1.0)


def test_joining_one_after_another_gives_a_regular_overlay_too() -> None:
    report = run_streams(StreamScenario(nodes=24, messages=3, join=0.5))
    assert (report.regular, report.completeness) == (True, 1.0)
    assert report.converged_at is not None
    assert report.converged_at > 12.0


@pytest.mark.parametrize("seed", SEEDS)
def test_nodes_that_come_and_go_get_everything_if_someone_stores(seed: int) -> None:
    report = run_streams(StreamScenario(nodes=16, messages=15, seed=seed, churn=15.0, storage=2))
    assert 0 < report.messages <= 15
    assert report.completeness == 1.0


@pytest.mark.parametrize("seed", SEEDS)
def test_what_links_lose_is_fetched_again(seed: int) -> None:
    trace = RowTrace()
    report = run_streams(StreamScenario(nodes=16, messages=15, seed=seed, loss=0.02, storage=2), trace)
    assert any(row.kind == Kind.DROPPED and row.seq is not None for row in trace.rows)
    assert report.completeness == 1.0


def test_holding_back_saves_duplicates_and_costs_delay() -> None:
    """Juslenius 2021, section 5.3.1: fewer than d - 2 duplicates need some way to skip neighbours."""
    plain = run_streams(StreamScenario(nodes=32, messages=10))
    held = run_streams(StreamScenario(nodes=32, messages=10, suppress=0.05))
    assert held.completeness == 1.0
    assert held.duplicates_per_message < plain.duplicates_per_message
    assert held.mean_delay_ms > plain.mean_delay_ms


def test_jitter_and_bandwidth_cost_delay_and_nothing_else() -> None:
    report = run_streams(StreamScenario(nodes=16, messages=5, jitter=0.05, bandwidth=20_000.0))
    assert report.completeness == 1.0
    assert report.mean_delay_ms > report.estimate_ms


def test_events_may_overlap() -> None:
    report = run_streams(StreamScenario(nodes=24, messages=40, gap=0.01))
    assert report.completeness == 1.0
    assert report.mean_delay_ms == pytest.approx(report.estimate_ms, rel=0.001)


def test_the_report_agrees_with_the_trace() -> None:
    trace = RowTrace()
    report = run_streams(StreamScenario(nodes=16, messages=4), trace)
    count = {kind: sum(row.kind == kind for row in trace.rows) for kind in Kind}
    assert count[Kind.PUBLISHED] == report.messages == 4
    assert count[Kind.SENT] == 4 * report.sends_per_message
    assert count[Kind.RECEIVED] == 4 * 15
    assert count[Kind.DUPLICATE] == 4 * report.duplicates_per_message
    assert count[Kind.LINK_UP] >= 16 * 4
    assert trace.sha256() == report.trace_sha256


def test_progress_grows_to_the_end() -> None:
    told: list[float] = []
    run_streams(StreamScenario(nodes=8, messages=3), progress=lambda done, what: told.append(done))
    assert told == sorted(told)
    assert (told[0], told[-1]) == (0.0, 1.0)


def test_the_default_is_the_published_setting() -> None:
    """Juslenius 2021, section 5.4.1: degree 4, 16 regions."""
    scenario = StreamScenario()
    assert (scenario.degree, scenario.control, scenario.latency) == (4, Control.COUNTER, "aws")


def test_scenarios_travel_as_json() -> None:
    scenario = StreamScenario(nodes=64, control=Control.NAIVE, near=True, churn=30.0, seed=9)
    assert msgspec.json.decode(msgspec.json.encode(scenario), type=StreamScenario) == scenario


def test_equal_scenarios_give_equal_reports_whatever_the_clock_says() -> None:
    scenario = StreamScenario(nodes=12, messages=3)
    first, second = run_streams(scenario), run_streams(scenario)
    assert first == second
    assert first.timeless().wall_seconds == 0.0
    assert first != run_streams(msgspec.structs.replace(scenario, seed=2))
    assert first != "a report"


def test_a_report_is_json() -> None:
    report = run_streams(StreamScenario(nodes=8, messages=2))
    fields = json.loads(msgspec.json.encode(report))
    assert msgspec.convert(fields, StreamReport) == report
    assert fields["nodes"] == 8
    assert len(fields["trace_sha256"]) == 64
