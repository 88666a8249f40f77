"""Matrices of latencies."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.lab.errors import LabError
from linnet.lab.sources.choices import Choices
from linnet.lab.sources.latency import inspect, parse
from linnet.lab.sources.names import names_of
from linnet.lab.sources.pieces import Piece, plain_pieces
from linnet.lab.sources.rows import Bad, Entry

SQUARE = "From/to,Oslo,Rome\nOslo,0,30.5\nRome,31,-\n"
LONG = (
    "from,to,rtt_ms\nOslo,Rome,81\nRome,Oslo,0.333\nRome,Rome,\nRome,Bern,fast\n,Bern,1\nRome,Bern,-1\nRome\n"
)


def found(path: Path, text: str, choices: Choices) -> list[Entry | Bad]:
    path.write_text(text)
    [piece] = inspect(plain_pieces([path]), choices)
    return list(parse(enumerate(text.splitlines(), 1), piece, choices, names_of("salt")))


def test_square(tmp_path: Path) -> None:
    rows = found(tmp_path / "m.csv", SQUARE, Choices(values="oneway"))
    assert rows[:3] == [
        Entry(2, ("Oslo", "Oslo", 0)),
        Entry(2, ("Oslo", "Rome", 30_500)),
        Entry(3, ("Rome", "Oslo", 31_000)),
    ]
    assert rows[3:] == [Bad(3, "left out: a pair without a value", "Rome,Rome,-")]


def test_a_round_trip_is_halved(tmp_path: Path) -> None:
    rows = found(tmp_path / "m.csv", LONG, Choices(values="rtt"))
    assert rows[:2] == [Entry(2, ("Oslo", "Rome", 40_500)), Entry(3, ("Rome", "Oslo", 167))]
    assert [(bad.line, bad.reason) for bad in rows[2:] if isinstance(bad, Bad)] == [
        (4, "left out: a pair without a value"),
        (5, "its value is no number of milliseconds from 0 to 60000"),
        (6, "it does not say from where, or to where"),
        (7, "its value is no number of milliseconds from 0 to 60000"),
        (8, "it has not as many fields as the header"),
    ]


@given(st.integers(0, 60_000_000), st.sampled_from(["rtt", "oneway"]))
def test_no_microsecond_is_lost(microseconds: int, values: str) -> None:
    text = f"from,to,v\na,b,{microseconds // 1000}.{microseconds % 1000:03}\n"
    piece = Piece("m", "m", columns=("from", "to", "v"))
    lines = enumerate(text.splitlines(), 1)
    [row] = parse(lines, piece, Choices(values=values), names_of("salt"))
    assert isinstance(row, Entry)
    exact = Fraction(microseconds, 2 if values == "rtt" else 1)
    assert 0 <= int(row.values[2]) - exact <= Fraction(1, 2)


def test_columns_of_other_names(tmp_path: Path) -> None:
    text = "from_city,to_city,country,avg\nOslo,Rome,Italy,10\n"
    choices = Choices(values="rtt", columns=("from_city", "to_city", "avg"))
    assert found(tmp_path / "m.csv", text, choices) == [Entry(2, ("Oslo", "Rome", 5000))]


@pytest.mark.parametrize(
    ("text", "choices", "words"),
    [
        (SQUARE, Choices(), "give --values rtt or --values oneway"),
        (LONG, Choices(values="oneway"), "rtt_ms does not look like --values oneway"),
        ("from,to,rtt_us\na,b,1\n", Choices(values="rtt"), "does not look like milliseconds"),
        ("from,to,a,b\na,b,1,2\n", Choices(values="rtt"), "say which are meant"),
        ("x,Oslo,Rome\nOslo,1,2\n", Choices(values="rtt"), "neither square"),
        ("x,Oslo,Oslo\nOslo,1,2\n", Choices(values="rtt"), "twice"),
        ("from,to,v\na,b,slow\n", Choices(values="rtt"), "v has no number"),
        (LONG, Choices(values="rtt", columns=("from", "to")), "needs three names"),
        (LONG, Choices(values="rtt", columns=("from", "to", "x")), "no column x"),
    ],
)
def test_what_cannot_be_known_is_refused(tmp_path: Path, text: str, choices: Choices, words: str) -> None:
    with pytest.raises(LabError, match=words):
        found(tmp_path / "m.csv", text, choices)
