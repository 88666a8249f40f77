"""Scenarios that are none are refused; reports are equal but for time and memory."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from linnet.core.errors import ConfigError
from linnet.sim.overlay.scenario import OverlayReport, OverlayScenario, drawn_interests, members_of


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


@pytest.mark.parametrize(("nodes", "topics", "each"), [(200, 40, 6), (30, 100, 3), (7, 3, 3), (500, 100, 10)])
def test_everyone_has_topics_and_every_topic_has_two(nodes: int, topics: int, each: int) -> None:
    found = drawn_interests(3, nodes, topics, each)
    assert len(found) == nodes
    assert all(list(own) == sorted(set(own)) and own[-1] < topics for own in found)
    members = members_of(found, topics)
    assert all(len(numbers) >= 2 for numbers in members)
    assert sum(map(len, members)) == sum(map(len, found)) >= nodes * each
    assert all(topic in found[number] for topic, numbers in enumerate(members) for number in numbers)


def test_a_community_shares_more_than_strangers_do() -> None:
    found = drawn_interests(1, 400, 200, 10)
    communities = 400 // 50

    def common(a: int, b: int) -> int:
        return len(set(found[a]) & set(found[b]))

    same = sum(common(node, node + communities) for node in range(200))
    other = sum(common(node, node + 1) for node in range(200))
    assert same > 1.8 * other


def test_seeds_and_limits() -> None:
    assert drawn_interests(1, 20, 5, 2) == drawn_interests(1, 20, 5, 2) != drawn_interests(2, 20, 5, 2)
    with pytest.raises(ConfigError, match="1 to 5"):
        drawn_interests(1, 20, 5, 6)
