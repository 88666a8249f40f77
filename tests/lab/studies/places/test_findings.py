"""Audits find the lies that were put in, and nothing else."""

from __future__ import annotations

from tests.lab.studies.places.conftest import LOGS, Looked

from linnet.lab.studies.places.findings import findings
from linnet.lab.studies.places.spoken import GENERATION, HASH


def test_injected_lies_are_found_and_nothing_else(looked: Looked) -> None:
    found = {each.lie: each for each in findings(looked.ours, looked.truths)}
    assert set(found) == {HASH, GENERATION}
    for each in found.values():
        assert LOGS / 20 < each.injected < LOGS / 2
        assert each.found == each.visible > 0
        assert each.unexpected == 0


def test_a_finding_where_nobody_lied_is_told(looked: Looked) -> None:
    honest = looked.truths.where("lie IS NULL").selectExpr("place").first()
    assert honest is not None
    wrong = looked.ours.sparkSession.createDataFrame(
        [(honest.place, "hashes", "1", "false"), (honest.place, "generations", "1", "falls")],
        looked.ours.schema,
    )
    told = findings(wrong, looked.truths)
    assert [each.unexpected for each in told] == [1, 1]
    assert [each.found for each in told] == [0, 0]
