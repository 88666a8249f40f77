from __future__ import annotations

import segno

from linnet.cli.room.qr import QUIET, qr_text

TEXT = "li1" + "abcdefghijklmnopqrstuvwxyz234567" * 15


def squares(drawn: str, light: bool) -> list[list[bool]]:
    """The squares of a code, read back from its half blocks."""
    rows = []
    for line in drawn.splitlines():
        rows.append([(letter in "▀█") != light for letter in line])
        rows.append([(letter in "▄█") != light for letter in line])
    return rows


def test_each_square_is_where_it_belongs() -> None:
    code = segno.make_qr(TEXT.upper(), error="l", boost_error=False)
    expected = [[bool(square) for square in row] for row in code.matrix_iter(border=QUIET)]
    read = squares(qr_text(TEXT, colours=False), light=True)
    assert read[: len(expected)] == expected
    assert not any(map(any, read[len(expected) :]))


def test_an_invitation_fits_a_terminal() -> None:
    lines = qr_text(TEXT, colours=False).splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 40


def test_in_colours_it_is_black_on_white() -> None:
    plain = qr_text("li1abc", colours=False).splitlines()
    coloured = qr_text("li1abc", colours=True).splitlines()
    assert len(plain) == len(coloured)
    bare = "\n".join(line.removeprefix("\x1b[30;107m").removesuffix("\x1b[0m") for line in coloured)
    assert squares(bare, light=False)[:-1] == squares("\n".join(plain), light=True)[:-1]
