"""The study of groups: from parameters to a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pyspark.sql import DataFrame

from linnet.lab.report.parts import Check, Report
from linnet.lab.report.published import read_published
from linnet.lab.stages import Made, Workshop
from linnet.lab.studies.groups import workload
from linnet.lab.studies.groups.authors import Authors, read_authors
from linnet.lab.studies.groups.figures import figures
from linnet.lab.studies.groups.metrics import read_outcomes
from linnet.lab.studies.groups.parameters import GroupsParameters
from linnet.lab.studies.groups.report import sections
from linnet.lab.studies.groups.run import counted, timed
from linnet.lab.studies.groups.targets import Target, targets
from linnet.lab.studies.groups.view import View
from linnet.lab.studies.groups.workload import Case
from linnet.lab.tables import GROUP_COUNTS, GROUP_TIMES, Table

ABSTRACT = (
    "Members of a group agree on keys without any server: each operation brings a message for every member, "
    "and every member acknowledges it. What does that cost, and how does it grow? The benchmark of Weidner "
    "et al. 2021, with the shipped code: all members in one process, real signed events, passed as bytes.",
    "Bytes and calls are counted, and the same in every run. Processor time is measured, by process, in "
    "tasks of Spark, and stands in a table of its own.",
)
_CLOSE = 0.002
"""Printed means are rounded; by this share they may differ from those of the raw measurements."""


def study(workshop: Workshop, parameters: GroupsParameters, data: Path | None = None) -> Report:
    """Run what is still missing, and say what came of it. `data` has the raw measurements of the authors."""
    parameters = parameters.checked()
    authors = None if data is None else read_authors(workshop, data)
    counts = _stage(workshop, "counts", GROUP_COUNTS, workload.counted_cases(parameters), counted)
    jobs = {
        "times": workload.timed_cases(parameters),
        "scaling": workload.scaled_cases(parameters),
        "beside": workload.beside_cases(parameters),
    }
    times = [_stage(workshop, name, GROUP_TIMES, cases, timed).frame for name, cases in jobs.items() if cases]
    frame = times[0]
    for more in times[1:]:
        frame = frame.union(more)
    workshop.tell("report")
    published = read_published("linnet.lab.studies.groups")
    view = View(parameters, read_outcomes(counts.frame, frame), published, authors)
    found = targets(view)
    return Report(
        study="groups",
        title="Encrypted groups: bytes, time and keys",
        abstract=ABSTRACT,
        parameters=_told(parameters, data),
        figures=tuple(figures(view)),
        checks=tuple(checks(view, found)),
        sections=tuple(sections(view, found)),
        stages=workshop.costs,
        sources=published.sources,
    )


def _stage(
    workshop: Workshop,
    name: str,
    table: Table,
    cases: Sequence[Case],
    work: Callable[..., DataFrame],
) -> Made:
    told = tuple("/".join(str(getattr(case, field)) for field in case.__struct_fields__) for case in cases)
    return workshop.stage(name, table, lambda: work(workshop.spark, cases), parameters={"cases": told})


def checks(view: View, found: Sequence[Target]) -> Iterator[Check]:
    """What must hold: targets of bytes, equal bytes for every seed, and printed tables as measured."""
    for target in found:
        if target.is_bytes:
            yield Check(
                id=target.id,
                says=f"{target.says}: {'at least' if target.at_least else 'at most'} {target.limit:g}",
                ok=target.met,
                detail=f"{target.measured:g} {target.unit}",
            )
    differing = view.outcomes.differing()
    yield Check(
        id="equal",
        says="bytes and calls do not depend on the seed",
        ok=not differing,
        detail=str(differing[0]) if differing else f"{len(view.outcomes.counts)} cases",
    )
    if view.authors is not None:
        yield _as_printed(view, view.authors)


def _as_printed(view: View, authors: Authors) -> Check:
    """Whether the tables that are kept here are those of the raw measurements."""
    off = []
    for (operation, size, what), seen in sorted(authors.items()):
        is_bytes = what == "bytes"
        id = f"bytes.{operation}.{size}" if is_bytes else f"cpu.{operation}.{size}.{what}"
        mean = seen.mean if is_bytes else seen.mean / 1e6
        printed = view.printed(id)
        if printed is None or abs(printed - mean) > (0 if is_bytes else max(_CLOSE * mean, 0.0006)):
            off.append(f"{id}: {mean:g}, printed {printed}")
    return Check(
        id="authors",
        says="the published tables kept here are those of the raw measurements",
        ok=not off,
        detail=off[0] if off else f"{len(authors)} means",
    )


def _told(parameters: GroupsParameters, data: Path | None) -> dict[str, str | int | float | None]:
    told: dict[str, str | int | float | None] = {}
    for name in parameters.__struct_fields__:
        value = getattr(parameters, name)
        listed = ", ".join(map(str, value)) if isinstance(value, tuple) else value
        told[name.replace("_", " ")] = listed
    told["raw measurements"] = "not here: tables as printed" if data is None else data.name
    return told
