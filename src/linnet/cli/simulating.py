"""What the simulation commands share: a bar that shows how far they are, and a clear missing extra."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from linnet.cli.exits import ExitCode, Failure
from linnet.core.errors import ConfigError

_EXTRA = ("numpy", "scipy", "pyarrow")


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
