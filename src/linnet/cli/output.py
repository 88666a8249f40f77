"""What commands print: results to standard output, everything else to standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console

_KEPT = frozenset("\n\t\u200c\u200d")

_UNBOUNDED = 4096
"""Columns of a table that goes into a file or a pipe: nothing is cut there."""


def say(text: str | bytes) -> None:
    """A line of the result."""
    typer.echo(text)


def warn(text: str) -> None:
    """A line beside the result."""
    typer.echo(text, err=True)


def say_json(value: object) -> None:
    """A value for programs, on one line."""
    import msgspec

    typer.echo(msgspec.json.encode(value))


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


def counted(count: int, noun: str, many: str | None = None) -> str:
    """A number with what it counts; `many` is the plural where that is not the noun with an s."""
    return f"{count:,} {noun if count == 1 else many or f'{noun}s'}"


def listed(names: Sequence[str], more: int = 0) -> str:
    """Names in a sentence, and how many there are beside them."""
    parts = [*names, *([f"{more:,} more"] if more else [])]
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)


def plain(text: str) -> str:
    """What a stranger said, so that a terminal only shows it: no escapes, nothing that turns around.

    Line ends stay, and what joins letters and pictures.
    """
    return "".join(letter if letter.isprintable() or letter in _KEPT else "\ufffd" for letter in text)


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
            return str(cell) or "-"
