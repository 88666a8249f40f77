"""An audit of the files of five nodes, from files to report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.lab.audit.homes import Homes, write_lines
from tests.lab.audit.tales import Oracle, Tale

from linnet.lab.audit.audit import Audited, audit
from linnet.lab.audit.fates import NOT_OWED
from linnet.lab.audit.pipeline import Parameters
from linnet.lab.errors import LabError
from linnet.lab.stages import Workshop


def test_the_summary_says_what_became_of_every_event(
    audited: tuple[Audited, Path], oracle: Oracle, tale: Tale
) -> None:
    found = {figure["id"]: figure["measured"] for figure in summary(audited[1])["figures"]}
    fates = list(oracle.missing().values())
    begins = {key: begin for key, (begin, *_) in oracle.readers().items()}
    owed = [
        node
        for event, node in oracle.arrivals
        if event in oracle.published and oracle.published[event][1] >= begins[event[0], node]
    ]
    assert found["rows"] == len(tale.rows)
    assert found["published"] == len(oracle.published)
    assert found["delivered"] == len(owed)
    for fate in ("stored", "explained", "pending", "cut", "lost"):
        assert found[fate] == fates.count(fate)
    assert found["owed"] == len(owed) + sum(fate not in NOT_OWED for fate in fates)
    assert found["completeness"] == len(owed) / found["owed"]


def summary(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "summary.json").read_text())
    return found


def test_what_was_lost_fails_it_with_an_example(audited: tuple[Audited, Path], homes: Homes) -> None:
    report = audited[0].report
    assert not report.ok
    (check,) = report.failures()
    assert "never got event" in check.detail
    assert any(name in check.detail for name in homes.names.values())


def test_bad_lines_are_counted_by_reason(audited: tuple[Audited, Path]) -> None:
    wanted = {"node is no hex": 1, "no JSON of this schema": 1}
    assert audited[0].quarantined == wanted
    assert summary(audited[1])["quarantined"] == wanted
    assert any("2 lines could not be used" in line for line in audited[0].report.abstract)


def test_the_second_time_nothing_is_done(
    spark: SparkSession, audited: tuple[Audited, Path], homes: Homes
) -> None:
    told: list[str] = []
    again = audit(Workshop(spark, audited[1], told.append), [homes.folder], Parameters())
    assert told == []
    assert again.findings == audited[0].findings


def test_a_trace_without_rows_is_told(spark: SparkSession, tmp_path: Path) -> None:
    write_lines(tmp_path / "home" / "trace.jsonl", [])
    with pytest.raises(LabError, match="no rows"):
        audit(Workshop(spark, tmp_path / "out"), [tmp_path / "home"], Parameters())
