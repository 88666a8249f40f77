"""The sections of the page."""

from __future__ import annotations

from msgspec.structs import replace
from tests.lab.studies.places.views import GOOD, SCALE

from linnet.lab.studies.places.report import audits, judged, sections, speeds


def test_a_page_has_both_parts_or_one() -> None:
    assert [each.title for each in sections(GOOD)] == ["Jobs beside the shipped classes", "A large log"]
    (only,) = sections(replace(GOOD, scale=None))
    assert only.grids[0].rows[0] == ("refused", "fragments with a wrong signature, and why", 10, 0)


def test_tables_tell_stages_lies_and_verdicts() -> None:
    rows = {row[0]: row for row in speeds(SCALE).rows}
    assert rows["intervals"][2:] == (10, 2.0, 500, 2)
    assert rows["state at id"][3:5] == (8.0, 125)
    assert audits(GOOD).rows == (("hash", 3, 2, 2, 0), ("generation", 3, 3, 3, 0))
    assert judged(SCALE).rows == (("no", 7), ("yes", 5))
