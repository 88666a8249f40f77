"""What the simulation commands share: options, a bar that shows how far they are, a clear missing extra,
and how an outcome is shown."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.output import say_json, say_table, warn
from linnet.core.errors import ConfigError

if TYPE_CHECKING:
    from linnet.trace.columns import ColumnTrace

_EXTRA = ("numpy", "scipy", "pyarrow")

SeedOption = Annotated[int, typer.Option(min=0, help="Equal seeds give equal runs.")]
LatencyOption = Annotated[
    str,
    typer.Option(
        metavar="TABLE",
        help="aws (16 regions), constant:MS, or a CSV file of your own: a first line region,A,B and for each "
        "region a line A,0.1,12.5 with the milliseconds one way from it to A, B and so on.",
    ),
]
TraceOption = Annotated[
    Path | None, typer.Option(metavar="FILE.parquet", dir_okay=False, help="Write every record of the run.")
]


@contextmanager
def simulation() -> Generator[None]:
    """Name the extra if a package of it is not installed; what is configured wrongly was typed."""
    try:
        yield
    except ConfigError as error:
        raise Failure(str(error), ExitCode.USAGE) from error
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _EXTRA:
            raise
        raise Failure(
            f"simulation needs {error.name}, which is not installed: pip install 'linnet[sim]'"
        ) from error


@contextmanager
def progress_bar(quiet: bool) -> Generator[Callable[[float, str], None]]:
    """A bar on standard error; nothing is drawn for programs, or where nobody watches."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, what: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from linnet.cli.output import console

    columns = (TextColumn("{task.description:28}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(error=True), transient=True) as progress:
        task = progress.add_task("", total=1.0)

        def show(done: float, what: str) -> None:
            progress.update(task, completed=done, description=what)

        yield show


def write_trace(kept: ColumnTrace, path: Path | None) -> None:
    """Write every record of a run where it was wished for; `Failure` if that cannot be."""
    if path is None:
        return
    try:
        kept.write_parquet(path)
    except OSError as error:
        raise Failure(f"{path}: cannot be written: {error.strerror or error}") from error


def show_outcome(
    report: Struct,
    rows: Sequence[tuple[str, object]],
    as_json: bool,
    is_good: bool,
    complaints: Iterable[str],
) -> None:
    """Say what came of a run; exits 1, with what is wrong, if it is not as it has to be."""
    if as_json:
        say_json(report)
    else:
        say_table(("of the run", "is "), rows)
    if not is_good:
        for line in complaints:
            warn(line)
        raise typer.Exit(ExitCode.FAILED)
