"""What commands print: results to standard output, everything else to standard error."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import typer

from linnet.core.counts import counted

__all__ = [
    "console",
    "counted",
    "harmless",
    "json_text",
    "listed",
    "paragraphs",
    "plain",
    "say",
    "say_json",
    "say_raw",
    "say_table",
    "shown",
    "size_text",
    "warn",
]

if TYPE_CHECKING:
    from rich.console import Console

_JOINERS = frozenset("\u200c\u200d")
"""What joins letters and pictures, and does nothing else."""
_OWN = frozenset("\n\t")
"""What only commands themselves may use, between lines and columns."""

_UNBOUNDED = 4096
"""Columns of a table that goes into a file or a pipe: nothing is cut there."""


def say(text: str) -> None:
    """A line of the result. Whatever is in it, a terminal only shows it."""
    typer.echo(harmless(text))


def say_raw(text: str | bytes) -> None:
    """The same as it is: a picture of our own making, or bytes that were asked for as they are."""
    typer.echo(text)


def warn(text: str) -> None:
    """A line beside the result. Whatever is in it, a terminal only shows it."""
    typer.echo(harmless(text), err=True)


def say_json(value: object) -> None:
    """A value for programs, on one line."""
    typer.echo(json_text(value))


def json_text(value: object) -> str:
    """A value as JSON that a terminal only shows: what JSON does not escape by itself is escaped as well."""
    import msgspec

    text = msgspec.json.encode(value).decode()
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join(letter if _is_shown(letter) else _json_escape(letter) for letter in text)


def _json_escape(letter: str) -> str:
    raw = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{int.from_bytes(raw[at : at + 2]):04x}" for at in range(0, len(raw), 2))


def say_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table for people; columns whose name ends in a blank are numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    for column in columns:
        table.add_column(column.strip(), justify="right" if column.endswith(" ") else "left", overflow="fold")
    for row in rows:
        table.add_row(*(shown(cell) for cell in row))
    console().print(table)


def console(error: bool = False) -> Console:
    """A console of this moment's standard output or error."""
    from rich.console import Console

    stream = sys.stderr if error else sys.stdout
    return Console(
        file=stream, width=None if stream.isatty() else _UNBOUNDED, highlight=False, markup=False, emoji=False
    )


def listed(names: Sequence[str], more: int = 0) -> str:
    """Names in a sentence, and how many there are beside them."""
    parts = [*names, *([f"{more:,} more"] if more else [])]
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)


def plain(text: str | bytes) -> str:
    """What a stranger said, on one line of which a terminal shows every sign: ESC is ``\\x1b`` there.

    Controls, line ends, tabs and what turns writing around are written out, and bytes that are no text;
    what joins letters and pictures stays.
    """
    said = text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else text
    if said.isascii() and said.isprintable():
        return said
    return "".join(letter if _is_shown(letter) else _escape(letter) for letter in said)


def paragraphs(text: str) -> str:
    """The same over several lines, for those who set them apart: whoever prints it indents what follows."""
    return "\n".join(map(plain, text.split("\n")))


def harmless(text: str) -> str:
    """A line of a command's own, whatever strangers have in it: its line ends and tabs stay, as ours."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(letter if letter in _OWN or _is_shown(letter) else _escape(letter) for letter in text)


def _is_shown(letter: str) -> bool:
    return letter.isprintable() or letter in _JOINERS or unicodedata.category(letter) == "Zs"


def _escape(letter: str) -> str:
    return letter.encode("unicode_escape").decode()


def size_text(size: int) -> str:
    """Bytes as people read them."""
    for unit, bytes_of in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= bytes_of:
            return f"{size / bytes_of:.1f} {unit}"
    return counted(size, "byte")


def shown(cell: object) -> str:
    """A cell of a table as people read it."""
    match cell:
        case None:
            return "-"
        case bool():
            return "yes" if cell else "no"
        case float():
            return f"{cell:,.3f}" if abs(cell) < 10 else f"{cell:,.1f}"
        case int():
            return f"{cell:,}"
        case tuple() | list():
            return ", ".join(map(shown, cell)) or "-"
        case _:
            return plain(str(cell)) or "-"
