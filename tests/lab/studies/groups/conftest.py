"""A small study, run in a plain loop: what tables, plots and figures are made of."""

from __future__ import annotations

import pytest

from linnet.lab.report.published import read_published
from linnet.lab.studies.groups import workload
from linnet.lab.studies.groups.metrics import Outcomes, Time
from linnet.lab.studies.groups.parameters import GroupsParameters
from linnet.lab.studies.groups.run import count, measure
from linnet.lab.studies.groups.view import View

SMALL = GroupsParameters(sizes=(8, 4, 5), repeats=2, scaling=16, batch=3, missed=3, fuzz=1, fuzz_ops=5)


def outcomes_of(parameters: GroupsParameters) -> Outcomes:
    """What a study gathers, without Spark."""
    counts: dict[tuple[str, str, int, int], list[dict[tuple[str, str], int]]] = {}
    for case in workload.counted_cases(parameters):
        found = {(row[0], row[1]): row[2] for row in count(case)}
        counts.setdefault((case.operation, case.acks, case.batch, case.size), []).append(found)  # type: ignore[arg-type]
    times: dict[tuple[str, str, int], list[dict[tuple[str, str], Time]]] = {}
    cases = workload.timed_cases(parameters) + workload.scaled_cases(parameters)
    for case in cases + workload.beside_cases(parameters):
        rows = {(row[0], row[1]): Time(row[2], case.batch, *row[3:]) for row in measure(case)}  # type: ignore[arg-type]
        times.setdefault((case.operation, case.acks, case.size), []).append(rows)  # type: ignore[arg-type]
    return Outcomes(counts, times)


@pytest.fixture(scope="session")
def outcomes() -> Outcomes:
    return outcomes_of(SMALL)


@pytest.fixture
def view(outcomes: Outcomes) -> View:
    return View(SMALL, outcomes, read_published("linnet.lab.studies.groups"))
