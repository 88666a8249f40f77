"""The table of other overlays."""

from __future__ import annotations

from linnet.lab.studies.streams.literature import literature


def test_it_has_the_fourteen_rows_of_the_source() -> None:
    rows = {row.name: row for row in literature()}
    assert len(rows) == len(literature()) == 14
    assert (rows["Chord"].at_1000, rows["Chord"].range) == ("5.2-5.7", "2.5-14")
    assert "150-120" in rows["Pastry-FNS"].note
