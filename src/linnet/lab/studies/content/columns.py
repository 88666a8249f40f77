"""The tables of the study, from single runs to what tables of a report need."""

from __future__ import annotations

import pyarrow as pa  # type: ignore[import-untyped]

from linnet.lab.tables import Table

_RUN = "scenario STRING NOT NULL, variant STRING NOT NULL, nodes INT NOT NULL, f INT NOT NULL, "
_RUN_GRAIN = ("scenario", "variant", "nodes", "f")
_STAGED = _RUN + "stage INT NOT NULL, "
_STAGED_GRAIN = (*_RUN_GRAIN, "stage")

POINTS = Table(
    "content_points",
    1,
    _STAGED + "repeat INT NOT NULL, metric STRING NOT NULL, value BIGINT NOT NULL, count BIGINT NOT NULL",
    (*_STAGED_GRAIN, "repeat", "metric", "value"),
)
"""What was measured in each run, and how often this value: times in microseconds, memory in bytes.

`f` is how many backups a node has, `stage` counts from 1 and is 0 of a scenario in one piece. Two runs
differ in what processors and memory did, and in nothing else.
"""

SUMMARY = Table(
    "content_summary",
    1,
    _STAGED + "metric STRING NOT NULL, points BIGINT NOT NULL, dropped BIGINT NOT NULL, mean DOUBLE, "
    "least BIGINT, quarter BIGINT, half BIGINT, three_quarters BIGINT, most BIGINT",
    (*_STAGED_GRAIN, "metric"),
)
"""Distributions. `dropped`: deltas below zero, which say nothing of what was taken; they are not `points`."""

CORRECTNESS = Table(
    "content_correctness",
    1,
    _STAGED + "expected BIGINT NOT NULL, missing BIGINT NOT NULL, duplicated BIGINT NOT NULL, "
    "unasked BIGINT NOT NULL, duplicated_percent DOUBLE, reliability_percent DOUBLE",
    _STAGED_GRAIN,
)
"""Pairs of an event and a node that wants it, over all repeats, and what became of them."""

CUMULATED = Table(
    "content_cumulated",
    1,
    _STAGED + "metric STRING NOT NULL, mean DOUBLE, cumulated DOUBLE",
    (*_STAGED_GRAIN, "metric"),
)
"""The mean of each stage, and the sum of those of all stages up to it."""

ARROW = pa.schema(
    [
        ("scenario", pa.string()),
        ("variant", pa.string()),
        ("nodes", pa.int32()),
        ("f", pa.int32()),
        ("stage", pa.int32()),
        ("repeat", pa.int32()),
        ("metric", pa.string()),
        ("value", pa.int64()),
        ("count", pa.int64()),
    ]
)
"""The columns of `POINTS`, as tasks give them."""
