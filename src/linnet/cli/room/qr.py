"""QR codes of half blocks: two rows of squares in one row of letters."""

from __future__ import annotations

QUIET = 2
"""Empty squares around it: four are the rule; two keep an invitation within 80 columns."""

_BLOCKS = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}
_COLOURS = "\x1b[30;107m"
_RESET = "\x1b[0m"


def qr_text(text: str, colours: bool) -> str:
    """The code of a text in capitals, to be printed. With `colours` it is black on white everywhere."""
    import segno

    # Capitals and digits cost 5.5 bits each, small letters 8. The screen is whole: the least correction does.
    code = segno.make_qr(text.upper(), error="l", boost_error=False)
    rows = [[bool(square) for square in row] for row in code.matrix_iter(border=QUIET)]
    if len(rows) % 2:
        rows.append([False] * len(rows[0]))
    if not colours:
        # Most terminals are dark: there the light squares must be drawn.
        rows = [[not square for square in row] for row in rows]
    lines = (
        "".join(_BLOCKS[pair] for pair in zip(upper, lower, strict=True))
        for upper, lower in zip(rows[::2], rows[1::2], strict=True)
    )
    return "\n".join(f"{_COLOURS}{line}{_RESET}" if colours else line for line in lines)
