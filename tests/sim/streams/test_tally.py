"""A scenario in whole numbers says the same as the report for people."""

from __future__ import annotations

import pytest

from linnet.overlay.config import Control
from linnet.sim.links import aws_latency
from linnet.sim.streams.course import run_streams
from linnet.sim.streams.tally import tally_streams
from linnet.sim.streams.world import StreamScenario

SCENARIOS = [
    StreamScenario(24, messages=6),
    StreamScenario(17, 5, messages=4, seed=3, latency="constant:20"),
    StreamScenario(20, messages=5, near=True, still=True, settle_limit=12),
]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_tally_is_the_report_in_integers(scenario: StreamScenario) -> None:
    tally, report = tally_streams(scenario, hashed=True), run_streams(scenario)
    totals = tally.totals
    receipts = totals["receipts"]
    assert totals["delay"] / receipts / 1000 == pytest.approx(report.mean_delay_ms, abs=0.001)
    assert totals["path_delay"] / totals["paths"] / 1000 == pytest.approx(report.estimate_all_ms, abs=0.001)
    assert totals["source_path_delay"] / receipts / 1000 == pytest.approx(report.estimate_ms, abs=0.001)
    assert totals["reached"] / totals["expected"] == report.completeness == 1.0
    assert totals["sent"] / totals["messages"] == report.sends_per_message
    assert totals["duplicates"] / totals["messages"] == report.duplicates_per_message
    assert totals["link_delay"] / totals["links"] / 1000 == pytest.approx(report.mean_edge_delay_ms)
    assert totals["pair_delay"] / totals["all_pairs"] / 1000 == pytest.approx(report.pair_mean_delay_ms)
    assert (totals["control"], totals["stale"]) == (report.control_messages, report.statuses_stale)
    assert totals["trace"] == int(report.trace_sha256[:16], 16) >> 1
    assert bool(totals["regular"]) is report.regular
    assert (min(tally.degrees), max(tally.degrees)) == (report.degree_min, report.degree_max)
    assert sum(tally.delays.values()) == sum(tally.hops.values()) == receipts
    assert sum(tally.hop_delays.values()) == totals["delay"]
    assert max(tally.hops) == report.max_hops
    assert "trace" not in tally_streams(scenario).totals


def test_floods_take_the_shortest_paths_to_a_microsecond() -> None:
    totals = tally_streams(StreamScenario(40, messages=10)).totals
    assert totals["source_paths"] == totals["receipts"]
    assert abs(totals["delay"] - totals["source_path_delay"]) <= totals["receipts"]


def test_a_naive_overlay_that_is_stilled_stays_and_loses_nothing() -> None:
    """A naive tracker goes on for ever; silent, it leaves one graph, and floods over it miss nobody."""
    totals = tally_streams(
        StreamScenario(48, messages=10, control=Control.NAIVE, still=True, settle_limit=10)
    ).totals
    assert totals["reached"] == totals["expected"] == 10 * 47
    assert totals["source_paths"] == totals["receipts"]
    assert abs(totals["delay"] - totals["source_path_delay"]) <= totals["receipts"]


def test_copies_that_return_to_the_publisher_are_told_apart() -> None:
    """Three nodes in a ring: the two receivers exchange a duplicate each, and nothing returns."""
    ring = tally_streams(StreamScenario(3, 2, messages=4, latency="constant:10")).totals
    assert (ring["duplicates"], ring["returned"]) == (8, 0)
    # In a ring of five the copies meet on the far side; with unequal links one may come all the way round.
    wide = tally_streams(StreamScenario(5, 2, messages=40)).totals
    assert wide["duplicates"] == wide["sent"] - wide["receipts"]
    assert 0 <= wide["returned"] <= 40


def test_a_table_may_be_given_instead_of_its_name() -> None:
    by_name, by_table = (
        tally_streams(StreamScenario(12, messages=3, latency=latency)) for latency in ("aws", aws_latency())
    )
    assert by_name == by_table
