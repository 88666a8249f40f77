"""What commands print: results to standard output, everything else to standard error."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from linnet.core.counts import counted as counted

if TYPE_CHECKING:
    from rich.console import Console

_JOINERS = frozenset("\u200c\u200d")
"""Characters that join letters and pictures and do nothing else."""
_OWN = frozenset("\n\t")
"""Control characters that only commands themselves may use, between lines and columns."""

_UNBOUNDED = 4096
"""The width of a table in a file or a pipe: nothing is cut there."""


def say(text: str) -> None:
    """Print a line of the result, escaped so that a terminal only shows it."""
    typer.echo(harmless(text))


def say_raw(text: str | bytes) -> None:
    """Print text that we made ourselves, such as a picture, or bytes requested in raw form."""
    typer.echo(text)


def warn(text: str) -> None:
    """Print a line on standard error, escaped so that a terminal only shows it."""
    typer.echo(harmless(text), err=True)


def say_json(value: object, kind: object = None) -> None:
    """Print a value as JSON on one line; `kind` is its type if that is a union."""
    typer.echo(json_text(value, kind))


def json_text(value: object, kind: object = None) -> str:
    """Return a value as JSON that is safe for a terminal: what JSON leaves unescaped is escaped as well."""
    from linnet.api.json_forms import to_json

    text = to_json(value, kind).decode()
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join(letter if _is_shown(letter) else _json_escape(letter) for letter in text)


def _json_escape(letter: str) -> str:
    raw = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{int.from_bytes(raw[at : at + 2]):04x}" for at in range(0, len(raw), 2))


def say_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table for people; columns whose name ends in a blank are numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    for column in columns:
        table.add_column(column.strip(), justify="right" if column.endswith(" ") else "left", overflow="fold")
    for row in rows:
        table.add_row(*(shown(cell) for cell in row))
    console().print(table)


def console(error: bool = False) -> Console:
    """Return a console of the present standard output or error."""
    from rich.console import Console

    stream = sys.stderr if error else sys.stdout
    return Console(
        file=stream, width=None if stream.isatty() else _UNBOUNDED, highlight=False, markup=False, emoji=False
    )


def fact_lines(facts: Iterable[tuple[str, object]], width: int) -> list[str]:
    """Return a line for each fact, its value behind its name."""
    return [f"{name:{width}}{value}" for name, value in facts]


def listed(names: Sequence[str], more: int = 0) -> str:
    """Join names for a sentence, with the number of the omitted ones."""
    parts = [*names, *([f"{more:,} more"] if more else [])]
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)


def plain(text: str | bytes) -> str:
    """Return a stranger's text on one line, with everything escaped that a terminal would interpret.

    Escapes control characters, line ends, tabs, characters that change the writing direction, and invalid
    bytes; characters that join letters and pictures stay.
    """
    said = text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else text
    if said.isascii() and said.isprintable():
        return said
    return "".join(letter if _is_shown(letter) else _escape(letter) for letter in said)


def paragraphs(text: str) -> str:
    """Return a stranger's text on several lines, each escaped as by `plain`; the caller indents them."""
    return "\n".join(map(plain, text.split("\n")))


def harmless(text: str) -> str:
    """Escape what strangers may have put into a line of ours; our own line ends and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(letter if letter in _OWN or _is_shown(letter) else _escape(letter) for letter in text)


def _is_shown(letter: str) -> bool:
    return letter.isprintable() or letter in _JOINERS or unicodedata.category(letter) == "Zs"


def _escape(letter: str) -> str:
    return letter.encode("unicode_escape").decode()


def size_text(size: int) -> str:
    """Return a size in bytes in words for people."""
    for unit, bytes_of in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= bytes_of:
            return f"{size / bytes_of:.1f} {unit}"
    return counted(size, "byte")


def shown(cell: object) -> str:
    """Return the text of a table's cell."""
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


@contextmanager
def progress_bar(quiet: bool) -> Iterator[Callable[[float, str], None]]:
    """Show a progress bar for the block; yields a function of the share done and the present step."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, what: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:28}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(error=True), transient=True) as progress:
        task = progress.add_task("", total=1.0)
        yield lambda done, what: progress.update(task, completed=done, description=what)


@contextmanager
def file_bar(name: str, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Show a file's progress bar for the block; yields a function of the bytes done and the total."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, what: None
        return
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TransferSpeedColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console(error=True), transient=True) as progress:
        task = progress.add_task(name, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
