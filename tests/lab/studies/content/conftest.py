"""A study with made-up numbers: what tables, plots and targets are made of."""

from __future__ import annotations

import pytest

from linnet.lab.report.published import read_published
from linnet.lab.studies.content.parameters import ContentParameters
from linnet.lab.studies.content.run import FILTERS, HOPS, LATENCY, MEMORY, PROCESSOR, SUBSCRIBING
from linnet.lab.studies.content.view import Counts, Key, Spread, View
from linnet.lab.studies.content.workload import PUBLISHED_VARIANTS, SCENARIOS

UNITS = {LATENCY: 70_000, SUBSCRIBING: 50_000, PROCESSOR: 40_000, MEMORY: 3 << 20, HOPS: 2}


@pytest.fixture
def view() -> View:
    """All published variants, at 60 and 250 nodes, without a loss."""
    keys: list[Key] = [
        (scenario, variant, nodes, 2, 0)
        for nodes in (60, 250)
        for scenario in SCENARIOS
        for variant in PUBLISHED_VARIANTS
    ]
    keys += [("replication", "base-reliable", 75, f, stage) for f in (1, 2, 3, 5) for stage in (1, 2, 3, 4)]
    keys += [("long-run", "base-reliable", 30, 2, stage) for stage in (1, 2)]
    spreads = {
        (key, metric): Spread(112, 0, float(value), value, value, value, value, 2 * value)
        for key in keys
        for metric, value in UNITS.items()
    }
    for stage in (1, 2):
        left = Spread(1, 0, 50.0 / stage, 1, 1, 1, 1, 1)
        spreads[("long-run", "base-reliable", 30, 2, stage), FILTERS] = left
    sums: dict[tuple[Key, str], float | None] = {
        (key, metric): float(UNITS[metric] * key[4])
        for key in keys
        if key[0] == "replication"
        for metric in (PROCESSOR, MEMORY)
    }
    counts = {key: Counts(112, 0, 1, 0, 0.89, 100.0) for key in keys}
    published = read_published("linnet.lab.studies.content")
    return View(ContentParameters(nodes=(60, 250)), published, spreads, counts, sums, ("fast",))
