"""A small study, run in a plain loop: what tables, plots and figures are made of."""

from __future__ import annotations

import pytest

from linnet.lab.report.published import read_published
from linnet.lab.studies.overlay.data import Surroundings, read_surroundings
from linnet.lab.studies.overlay.metrics import Outcomes, gather
from linnet.lab.studies.overlay.parameters import OverlayParameters
from linnet.lab.studies.overlay.run import measure
from linnet.lab.studies.overlay.view import View
from linnet.lab.studies.overlay.workload import CHOOSING, DEGREES, LIVING, MENDING, Case, origins, stages

SMALL = OverlayParameters(
    nodes=16,
    topics=4,
    subscriptions=2,
    rounds=8,
    attack_nodes=50,
    attack_rounds=20,
    filter_users=30,
    ring_sizes=(50, 100),
    ring_events=2,
    growing=(1, 4),
)
_SLOW = (LIVING, DEGREES, MENDING, CHOOSING)


def _made_up(case: Case) -> dict[str, dict[int, int]]:
    """What an overlay that works comes to: running them all would take long."""
    ratios = dict.fromkeys(
        (
            "hit_ratio",
            "hit_ratio_after_repair",
            "hit_ratio_at_once",
            "connected_topics",
            "connected_topics_least",
            "rings_right",
        ),
        1_000_000,
    )
    order, _, subscribed = case.setting.partition("|") if case.experiment == DEGREES else ("id", "", "4")
    degree = 4000 + (900 if order == "hash" else 500) * int(subscribed)
    means = dict.fromkeys(
        ("mean_hops", "mean_delay_ms", "duplication", "join_rounds", "hops", "copies"), 2500
    )
    means |= {"mean_degree": degree, "degree": 6000, "repaired_rounds": 1, "whole_after_ms": 7000}
    counts = {"delay_ms": 90, "hourly_bytes": 4000, "joining_bytes": 900, "liar_view_share": 100_000}
    counts |= {"causal_violations": 0, "repeated": 0, "noise": 0, "join_ms_small": 2000}
    return {name: {0: value} for name, value in (ratios | means | counts).items()}


@pytest.fixture(scope="session")
def around() -> Surroundings:
    return read_surroundings("", 16, 4, 2, 1)


@pytest.fixture(scope="session")
def outcomes(around: Surroundings) -> Outcomes:
    rows = []
    for cases in stages(SMALL, around).values():
        for case in cases:
            slow = case.experiment in _SLOW
            found = _made_up(case) if slow else measure(case, around, SMALL.filter_users)
            rows += [
                (case.experiment, case.setting, case.repeat, name, bin, count)
                for name, counts in found.items()
                for bin, count in counts.items()
            ]
    return gather(rows)


@pytest.fixture
def view(outcomes: Outcomes, around: Surroundings) -> View:
    published = read_published("linnet.lab.studies.overlay")
    return View(SMALL, outcomes, published, around.missing, around.latency_name, tuple(origins(around)))
