"""Plain tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from linnet.lab.errors import LabError
from linnet.lab.sources.choices import Choices
from linnet.lab.sources.clocks import NO_TIME, TIME_OUTSIDE
from linnet.lab.sources.pieces import Piece, plain_pieces
from linnet.lab.sources.plain import inspect, parse
from linnet.lab.sources.rows import Bad, Found, Said

PIECE = Piece("m.csv", "m.csv", granularity="s")


def parsed(text: str, choices: Choices) -> list[Found]:
    return list(parse(enumerate(text.splitlines(), 1), PIECE, choices))


@pytest.mark.parametrize(
    ("unit", "time"), [("s", "1704106800"), ("ms", "1704106800000"), ("iso", "2024-01-01T12:00")]
)
def test_the_unit_is_as_stated(unit: str, time: str) -> None:
    found = parsed(f"chat,ts,user,chars\nteam,{time},ada,5\n", Choices(unit=unit, timezone="Europe/Berlin"))
    assert found == [Said(2, ("team",), 1_704_106_800_000, "ada", 5, "text", "s")]


def test_a_kind_may_be_given() -> None:
    found = parsed(
        "kind,chat,ts,user,chars\nimage,c,1704110400,ada,0\n,c,1704110400,ada,9\n", Choices(unit="s")
    )
    assert [each.kind for each in found if isinstance(each, Said)] == ["image", "text"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("c,soon,ada,5,", NO_TIME),
        ("c,1,ada,5,", TIME_OUTSIDE),
        (",1704110400,ada,5,", "it does not say in which chat, or who"),
        ("c,1704110400,ada,five,", "chars is no count"),
        ("c,1704110400,ada,5,song", "its kind is not known"),
    ],
)
def test_bad_rows_have_a_reason(row: str, reason: str) -> None:
    assert parsed(f"chat,ts,user,chars,kind\n{row}", Choices(unit="s")) == [Bad(2, reason, row)]


@pytest.mark.parametrize(
    ("unit", "words"),
    [("", "give --unit"), ("s", "look like milliseconds"), ("iso", "no times of ISO 8601")],
)
def test_a_unit_that_is_unknown_or_wrong_is_refused(tmp_path: Path, unit: str, words: str) -> None:
    path = tmp_path / "m.csv"
    path.write_text("chat,ts,user,chars\nteam,1704110400000,ada,5\n")
    with pytest.raises(LabError, match=words):
        inspect(plain_pieces([path]), Choices(unit=unit))


@pytest.mark.parametrize(
    ("unit", "time", "granularity"),
    [("ms", "1704110400000", "ms"), ("s", "1704110400", "s"), ("s", "1704110400.25", "ms")],
)
def test_how_fine_the_clock_is(tmp_path: Path, unit: str, time: str, granularity: str) -> None:
    path = tmp_path / "m.csv"
    path.write_text(f"chat,ts,user,chars\nteam,{time},ada,5\n")
    assert inspect(plain_pieces([path]), Choices(unit=unit))[0].granularity == granularity
