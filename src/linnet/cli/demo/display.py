"""Watching the demo: a line for what happens, a bar for how far it is; on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from linnet.cli.demo.story import Plan, Progress, Tell
from linnet.cli.moments import wall_clock
from linnet.cli.output import console, warn


@contextmanager
def display(plan: Plan, quiet: bool) -> Iterator[tuple[Tell, Progress]]:
    """Where to tell what happens, and how many messages are published and delivered."""
    began = wall_clock()

    def line(text: str) -> str:
        return f"{wall_clock() - began:5.1f} s  {text}"

    if quiet:
        yield (lambda text: None), (lambda published, delivered: None)
    elif not sys.stderr.isatty():
        yield (lambda text: warn(line(text))), (lambda published, delivered: None)
    else:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bars

        columns = (TextColumn("{task.description:10}"), BarColumn(), MofNCompleteColumn())
        with Bars(*columns, console=console(error=True), transient=True) as bars:
            first = bars.add_task("published", total=plan.messages)
            second = bars.add_task("delivered", total=plan.messages * plan.peers)

            def progress(published: int, delivered: int) -> None:
                bars.update(first, completed=published)
                bars.update(second, completed=delivered)

            yield (lambda text: bars.console.print(line(text))), progress
