"""What the report says, of findings that are made up."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from linnet.lab.audit.audit import Audited
from linnet.lab.audit.findings import Counted, Findings, Skew
from linnet.lab.audit.pipeline import Parameters
from linnet.lab.audit.report import READERS, reader_rows, report_of, warnings_of


def report_lines(findings: Findings) -> tuple[str, ...]:
    return report_of(findings, {}, Parameters(), {}, ()).abstract


def test_every_reader_has_a_row(audited: tuple[Audited, Path]) -> None:
    made = audited[0]
    rows = reader_rows(made.findings, made.labels)
    assert len(rows) == made.findings.reader_count
    assert all(len(row) == len(READERS) for row in rows)
    assert {row[0] for row in rows} <= set(made.labels.values())


def test_where_nothing_is_lost_it_holds(audited: tuple[Audited, Path]) -> None:
    findings = audited[0].findings
    whole = findings.totals | {"lost": 0, "owed": findings.total("delivered")}
    report = report_of(replace(findings, totals=whole, lost=()), {}, Parameters(), {}, ())
    assert report.ok
    assert report.abstract[0].endswith("deliveries that were owed happened.")
    assert "Lost without a record" not in [section.title for section in report.sections]
    rest = findings.totals | {"lost": 0}
    assert "the trace says why" in report_lines(replace(findings, totals=rest, lost=()))[0]


def test_what_must_be_known_to_read_the_figures_is_said(audited: tuple[Audited, Path]) -> None:
    totals = audited[0].findings.totals | {"unpublished": 0}
    quiet = replace(audited[0].findings, holes=0, skew_count=0, skews=(), totals=totals)
    assert warnings_of(quiet, {}) == []
    loud = replace(
        quiet,
        holes=7,
        skew_count=1,
        skews=(Skew("aa", "bb", -2_500_000),),
        counted=(Counted("cc", "dd", 5, 4),),
    )
    said = " ".join(warnings_of(loud, {"no hex": 3}))
    for words in ("3 lines", "7 rows are missing", "2,500 ms", "1 readers only count"):
        assert words in said
    titles = [section.title for section in report_of(loud, {}, Parameters(), {}, ()).sections]
    assert titles[-2:] == ["Clocks that differ", "Readers that only count"]


def test_the_page_is_written(audited: tuple[Audited, Path]) -> None:
    page = (audited[1] / "report.html").read_text()
    for words in ("What became of every message", "Lost without a record", "<svg", "Clocks that differ"):
        assert words in page
