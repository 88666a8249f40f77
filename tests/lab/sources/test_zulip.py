"""Zulip's tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from linnet.lab.errors import LabError
from linnet.lab.sources.choices import Choices
from linnet.lab.sources.clocks import NO_TIME, TIME_OUTSIDE
from linnet.lab.sources.pieces import Piece, plain_pieces
from linnet.lab.sources.rows import Bad, Said
from linnet.lab.sources.zulip import inspect, parse

HEADER = "ts,stream_id,topic,user,chars\n"
PIECE = Piece("m.csv", "m.csv")


def test_a_topic_of_a_stream_is_a_chat() -> None:
    text = HEADER + "1519660926,7,0,3,20\n1519660927,7,later,4,0\n"
    found = list(parse(enumerate(text.splitlines(), 1), PIECE, Choices()))
    assert found == [
        Said(2, ("7", "0"), 1_519_660_926_000, "3", 20, "text", "s"),
        Said(3, ("7", "later"), 1_519_660_927_000, "4", 0, "text", "s"),
    ]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("x,7,0,3,20", NO_TIME),
        ("5,7,0,3,20", TIME_OUTSIDE),
        ("1519660926,7,0,,20", "it does not say in which stream or topic, or who"),
        ("1519660926,7,0,3,-1", "chars is no count"),
        ("1519660926,7,0,3,9999999999", "chars is no count"),
    ],
)
def test_bad_rows_have_a_reason(row: str, reason: str) -> None:
    lines = enumerate((HEADER + row).splitlines(), 1)
    assert list(parse(lines, PIECE, Choices())) == [Bad(2, reason, row)]


def test_milliseconds_are_refused_before_any_work(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text(HEADER + "1519660926000,7,0,3,20\n")
    with pytest.raises(LabError, match="look like milliseconds"):
        inspect(plain_pieces([path]), Choices())
    path.write_text("ts,topic,user,chars\n1519660926,7,0,3\n")
    with pytest.raises(LabError, match="no column stream_id"):
        inspect(plain_pieces([path]), Choices())
    path.write_text(HEADER + "1519660926,7,0,3,20\n")
    assert [piece.shown for piece in inspect(plain_pieces([path]), Choices())] == ["m.csv"]
