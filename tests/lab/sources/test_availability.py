"""When phones were online."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.lab.errors import LabError
from linnet.lab.sources.availability import (
    DAY_MS,
    NEVER,
    NO_NUMBERS,
    TOO_LONG,
    TOO_SHORT,
    WEEK_MS,
    inspect,
    parse,
    sessions,
)
from linnet.lab.sources.choices import Choices
from linnet.lab.sources.names import names_of
from linnet.lab.sources.pieces import Piece, plain_pieces
from linnet.lab.sources.rows import Bad, Entry

START = 1_402_358_400_000
NAMES = names_of("salt")
PIECE = Piece("s", "s")


def parsed(*lines: str) -> list[Entry | Bad]:
    return list(parse(enumerate(lines, 1), PIECE, Choices(), NAMES))


@given(st.booleans(), st.lists(st.integers(0, 5), max_size=12))
def test_sessions_are_the_milliseconds_online(online: bool, durations: list[int]) -> None:
    states = [online == (number % 2 == 0) for number, length in enumerate(durations) for _ in range(length)]
    found = sessions(online, durations)
    inside = {ms for start, end in found for ms in range(start, end)}
    assert inside == {ms for ms, state in enumerate(states) if state}
    assert all(start < end for start, end in found)
    assert all(before[1] < after[0] for before, after in pairwise(found))


def test_a_device_is_a_user_in_a_week() -> None:
    device = f"{NAMES.user('7')}/{START}"
    assert parsed(f"7 0 {START} 2 100 50 {WEEK_MS - 150}", "") == [Entry(1, (device, 100, 150, WEEK_MS))]
    assert parsed(f"7 1 {START} 2 100 50 {DAY_MS}") == [
        Entry(1, (device, 0, 100, DAY_MS + 150)),
        Entry(1, (device, 150, DAY_MS + 150, DAY_MS + 150)),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (f"7 1 {START} 2 {WEEK_MS} 1", TOO_LONG),
        (f"7 1 {START} 2 5 {DAY_MS - 6}", TOO_SHORT),
        (f"7 0 {START} 2 {WEEK_MS}", NEVER),
        (f"7 2 {START} 2 5", NO_NUMBERS),
        (f"7 1 {START} 2", NO_NUMBERS),
        (f"7 1 {'9' * 5000} 2 5", NO_NUMBERS),
        (f"7 1 {START} 2 5 -5", NO_NUMBERS),
        (f"7 1 {START} 2 5 x", NO_NUMBERS),
    ],
)
def test_bad_lines_have_a_reason(line: str, reason: str) -> None:
    [bad] = parsed(line)
    assert isinstance(bad, Bad)
    assert (bad.line, bad.reason) == (1, reason)


@pytest.mark.parametrize(
    ("text", "words"),
    [("hello\n", "no line at its beginning"), (f"7 1 {START // 1000} 2 5\n", "look like seconds")],
)
def test_another_kind_or_unit_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "s.txt"
    path.write_text(text)
    with pytest.raises(LabError, match=words):
        inspect(plain_pieces([path]), Choices())
    path.write_text(f"7 1 {START} 2 5\n")
    assert len(inspect(plain_pieces([path]), Choices())) == 1
