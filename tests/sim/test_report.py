"""Reports: compared without the clock, and read by machines."""

from __future__ import annotations

import json

import msgspec

from linnet.sim.report import StreamReport
from linnet.sim.scenario import StreamScenario
from linnet.sim.streams import run_streams


def test_equal_scenarios_give_equal_reports_whatever_the_clock_says() -> None:
    scenario = StreamScenario(nodes=12, messages=3)
    first, second = run_streams(scenario), run_streams(scenario)
    assert first == second
    assert hash(first) == hash(second)
    assert first.timeless().wall_seconds == 0.0
    assert first != run_streams(msgspec.structs.replace(scenario, seed=2))
    assert first != "a report"


def test_a_report_is_json() -> None:
    report = run_streams(StreamScenario(nodes=8, messages=2))
    fields = json.loads(msgspec.json.encode(report))
    assert msgspec.convert(fields, StreamReport) == report
    assert fields["nodes"] == 8
    assert len(fields["trace_sha256"]) == 64
