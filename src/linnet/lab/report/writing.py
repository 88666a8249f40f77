"""A report on disk: ``summary.json`` for machines and ``report.html`` for people."""

from __future__ import annotations

import json
import os
from math import isfinite
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from linnet.lab.errors import LabError
from linnet.lab.report.page import difference, page_of
from linnet.lab.report.parts import Cell, Figure, Grid, Report, StageCost

SCHEMA = 1
"""Version of ``summary.json``; a change of meaning is a new one."""


def write_report(report: Report, out: Path) -> None:
    """Write both files, each whole or not at all; the summary last, so that it speaks for both."""
    summary = json.dumps(summary_of(report), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    page = page_of(report)
    try:
        out.mkdir(parents=True, exist_ok=True)
        _replace(out / "report.html", page)
        _replace(out / "summary.json", summary)
    except OSError as error:
        raise LabError(f"the report cannot be written to {out}: {error.strerror}") from error


def summary_of(report: Report) -> dict[str, Any]:
    """All that the report says, in an order that stays; costs, which differ between equal runs, are last."""
    _unique("figure", [figure.id for figure in report.figures])
    _unique("check", [check.id for check in report.checks])
    return {
        "schema": SCHEMA,
        "study": report.study,
        "title": report.title,
        "ok": report.ok,
        "abstract": list(report.abstract),
        "parameters": {name: _plain(value, name) for name, value in report.parameters.items()},
        "checks": [
            {"id": check.id, "says": check.says, "ok": check.ok, "detail": check.detail}
            for check in report.checks
        ],
        "figures": [_figure(figure) for figure in report.figures],
        "tables": [
            {"section": section.title} | _grid(grid) for section in report.sections for grid in section.grids
        ],
        "sources": list(report.sources),
        "quarantined": dict(sorted(report.quarantined.items())),
        "stages": [_cost(stage) for stage in report.stages],
    }


def _figure(figure: Figure) -> dict[str, Any]:
    return {
        "id": figure.id,
        "title": figure.title,
        "unit": figure.unit,
        "published": _plain(figure.published, figure.id),
        "measured": _plain(figure.measured, figure.id),
        "difference_percent": difference(figure),
        "source": figure.source,
        "note": figure.note,
    }


def _grid(grid: Grid) -> dict[str, Any]:
    rows = [[_plain(value, grid.title) for value in row] for row in grid.rows]
    if any(len(row) != len(grid.columns) for row in rows):
        raise LabError(f"the table {grid.title!r} has a row that is not of {len(grid.columns)} cells")
    return {"title": grid.title, "columns": list(grid.columns), "rows": rows, "note": grid.note}


def _cost(stage: StageCost) -> dict[str, Any]:
    return {
        "name": stage.name,
        "rows": stage.rows,
        "seconds": stage.seconds,
        "peak_bytes": stage.peak_bytes,
        "reused": stage.reused,
    }


def _plain(value: Cell, where: str) -> Cell:
    """What JSON knows: numbers of numpy become plain ones, and what is no number is refused."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and isfinite(value):
        return float(value)
    raise LabError(f"{where!r} is {value!r}, which a report cannot hold; None says that there is nothing")


def _unique(kind: str, ids: list[str]) -> None:
    twice = sorted({id for id in ids if ids.count(id) > 1})
    if twice:
        raise LabError(f"the report has more than one {kind} named {', '.join(twice)}")


def _replace(path: Path, text: str) -> None:
    """Beside its place first, on disk, and then renamed: nobody sees half of it."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with fresh.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
