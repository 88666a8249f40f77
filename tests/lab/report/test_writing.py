"""Both files on disk."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from tests.lab.report.sample import sample

from linnet.lab.errors import LabError
from linnet.lab.report.parts import Cell, Figure, Grid, Section
from linnet.lab.report.writing import SCHEMA, summary_of, write_report


def measured(value: Cell) -> Figure:
    return Figure(id="x", title="X", unit="", measured=value)


def test_both_files_are_written_and_nothing_else(tmp_path: Path) -> None:
    write_report(sample(), tmp_path / "new" / "out")
    assert sorted(path.name for path in (tmp_path / "new" / "out").iterdir()) == [
        "report.html",
        "summary.json",
    ]


def test_the_summary_has_every_figure_side_by_side(tmp_path: Path) -> None:
    write_report(sample(), tmp_path)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["schema"] == SCHEMA
    assert summary["ok"] is True
    assert summary["figures"][0] == {
        "id": "undelivered.p2p",
        "title": "Undelivered",
        "unit": "%",
        "published": 10.0,
        "measured": 12.5,
        "difference_percent": 25.0,
        "source": "A 2024",
        "note": "",
    }
    assert summary["figures"][1]["difference_percent"] is None
    assert summary["tables"] == [
        {
            "section": "Delivery",
            "title": "Per margin",
            "columns": ["margin", "share"],
            "rows": [[1, 0.5], [2, None]],
            "note": "Few.",
        }
    ]
    assert list(summary["quarantined"].items()) == [("bad_user", 1), ("no_time", 3)]
    assert summary["stages"][0] == {
        "name": "profiles",
        "rows": 1000,
        "seconds": 72.4,
        "peak_bytes": 3 << 29,
        "reused": True,
    }
    assert list(summary)[-1] == "stages"


def test_equal_reports_are_equal_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_report(sample(), tmp_path / name)
    for file in ("summary.json", "report.html"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_a_failure_is_in_the_summary() -> None:
    summary = summary_of(sample(failing=True))
    assert summary["ok"] is False
    assert [check["ok"] for check in summary["checks"]] == [True, False]


def test_floats_stay_as_they_are_and_numpy_becomes_plain(tmp_path: Path) -> None:
    odd = 0.1 + 0.2
    figures = (
        measured(odd),
        replace(measured(np.int64(7)), id="y"),  # type: ignore[arg-type]
        replace(measured(np.float64(0.5)), id="z"),
    )
    write_report(replace(sample(), figures=figures), tmp_path)
    read = json.loads((tmp_path / "summary.json").read_text())["figures"]
    assert [figure["measured"] for figure in read] == [odd, 7, 0.5]


def test_what_is_no_number_is_refused_and_what_stood_stays(tmp_path: Path) -> None:
    write_report(sample(), tmp_path)
    before = (tmp_path / "summary.json").read_bytes()
    with pytest.raises(LabError, match="'x' is nan"):
        write_report(replace(sample(), figures=(measured(float("nan")),)), tmp_path)
    assert (tmp_path / "summary.json").read_bytes() == before


def test_two_figures_of_one_name_are_refused() -> None:
    with pytest.raises(LabError, match="more than one figure named x"):
        summary_of(replace(sample(), figures=(measured(1), measured(2))))


def test_a_ragged_table_is_refused() -> None:
    grid = Grid(title="G", columns=("a", "b"), rows=((1,),))
    with pytest.raises(LabError, match="not of 2 cells"):
        summary_of(replace(sample(), sections=(Section(title="S", grids=(grid,)),)))


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LabError, match="cannot be written"):
        write_report(sample(), tmp_path / "file")
