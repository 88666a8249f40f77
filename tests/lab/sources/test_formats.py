"""The formats of messages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from linnet.lab.sources.choices import Choices
from linnet.lab.sources.formats import FORMATS, LinesOf
from linnet.lab.sources.pieces import Piece
from linnet.lab.sources.rows import Bad, Found, Numbered


def test_every_format_has_its_own_name() -> None:
    assert list(FORMATS) == ["zulip", "whatsapp", "element", "slack", "slack-csv", "irc", "csv", "linnet"]


def complaining(lines: Iterator[Numbered], piece: Piece, choices: Choices) -> Iterator[Found]:
    for number, text in lines:
        yield Bad(number, "seen", text)


@pytest.mark.parametrize("content", [b"a\n\xff\nb\n", b"\xff\na\nb\n", b"a\nb\n\xff\n"])
def test_lines_that_cannot_be_read_are_found_too(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "f"
    path.write_bytes(content)
    found = list(LinesOf(complaining)(Piece(str(path), "f"), Choices()))
    assert sorted(bad.line for bad in found) == [1, 2, 3]
    assert [bad.reason for bad in found if isinstance(bad, Bad)].count("the line is not UTF-8") == 1
