"""Scenarios that are none are refused; reports are equal but for time and memory."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from linnet.core.errors import ConfigError
from linnet.sim.overlay_report import OverlayReport, OverlayScenario


@pytest.mark.parametrize(
    "wrong",
    [
        {"nodes": 1},
        {"nodes": 1_000_000},
        {"topics": 0},
        {"subscriptions": 0},
        {"subscriptions": 101},
        {"liars": 0.6},
        {"churn": -0.1},
        {"loss": 1.0},
        {"rounds": 0},
        {"events": 0},
        {"friends": -1},
    ],
)
def test_what_is_no_scenario(wrong: dict[str, Any]) -> None:
    OverlayScenario().check()
    with pytest.raises(ConfigError):
        OverlayScenario(**wrong).check()


def _report(**values: Any) -> OverlayReport:  # noqa: ANN401 - whatever fields have
    fields: dict[str, Any] = dict.fromkeys(OverlayReport.__struct_fields__, 0)
    return OverlayReport(**(fields | values))


def test_reports_compare_without_time() -> None:
    report = _report(trace_sha256="a", wall_seconds=1.0, memory_mb=3.0)
    assert report == replace(report, wall_seconds=2.0, memory_mb=9.0)
    assert report != replace(report, hit_ratio=0.5)
    assert report.ok
    assert not any(_report(**{name: 1}).ok for name in ("causal_violations", "repeated", "noise"))
    assert OverlayScenario(nodes=50, liars=0.1).lying == 5
