"""The burst of events in real nodes: what is wanted, what came, and one small run of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import content_live
from linnet.api.content import ContentSaid
from linnet.core.ids import EventId
from linnet.sim.content.scenario import Course, Variant, Workload


def said(workload: Workload) -> content_live.Said:
    return [
        (one, ContentSaid(EventId(number.to_bytes(32)), 1, 0, ()))
        for number, one in enumerate(workload.publications())
    ]


def test_as_many_deliveries_are_wanted_as_in_simulation() -> None:
    workload = Workload([f"node{number}" for number in range(60)], Course.EVENT_BURST)
    assert len(content_live.expected(workload, said(workload))) == 1471


def test_what_did_not_come_is_missing_and_not_in_the_mean() -> None:
    workload = Workload([f"node{number}" for number in range(15)], Course.NORMAL)
    outcome = said(workload)
    wanted = content_live.expected(workload, outcome)
    arrived = dict.fromkeys(sorted(wanted)[1:], 0.25)
    found = content_live.told(Variant.BASE_RELIABLE, Course.NORMAL, 15, outcome, wanted, arrived)
    assert (found.expected, found.missing, found.mean_ms) == (len(wanted), 1, 250.0)
    assert found.published_mean_ms is None


@pytest.mark.timeout(300)
def test_real_nodes_bring_everything(tmp_path: Path) -> None:
    found = content_live.run(tmp_path, 3, Variant.REDIRECT_RELIABLE, Course.EVENT_BURST)
    assert (found.publishers, found.missing, found.undelivered_told) == (3, 0, 0)
    assert 0.0 < found.median_ms <= found.longest_ms
