"""``linnet demo``: the command, and watching it run."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.moments import wall_clock
from linnet.cli.options import JsonOption, with_examples
from linnet.cli.output import console, warn

if TYPE_CHECKING:
    from linnet.cli.demo.story import Outcome, Plan, Progress, Tell

Peers = Annotated[int, typer.Option(min=3, max=64, help="Peers, besides tracker, standby and storage node.")]
Messages = Annotated[int, typer.Option(min=20, max=1_000_000, help="Messages in all, from two publishers.")]
Seed = Annotated[int, typer.Option(min=0, help="Chooses who publishes and who is killed.")]
Keep = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Leave homes, traces and what was received here; must not exist yet."),
]


@with_examples("linnet demo", "linnet demo --messages 500 --peers 5", "linnet demo --keep run --json")
def demo(
    peers: Peers = 8,
    messages: Messages = 2000,
    seed: Seed = 1,
    keep: Keep = None,
    as_json: JsonOption = False,
) -> None:
    """Watch a real network deliver every message while two of its processes are killed.

    A tracker, its standby, a storage node and the peers run as processes of their own, over TLS on
    this machine. Two peers publish; another is killed with SIGKILL and comes back; the tracker is
    killed for good. Every number comes from what the processes wrote. Exits 1 if anything is lost.

    Duplicates are copies that came over other paths and were filtered out. The delays of the peer
    that was killed include the time that it was away. --json tells more.
    """
    from linnet.cli.demo.story import Plan

    with _directory(keep) as directory:
        outcome = _run(Plan(peers, messages, seed), directory, as_json)
        outcome.show(as_json)
        if not outcome.ok:
            raise Failure(f"{outcome.verdict}; everything that was written is in {directory}")


def _run(plan: Plan, directory: Path, as_json: bool) -> Outcome:
    import asyncio
    import signal

    from linnet.cli.demo.network import Network
    from linnet.cli.demo.story import Outcome, Story
    from linnet.node.running import run

    async def played() -> Outcome:
        task = asyncio.current_task()
        if task is not None:
            # As by Ctrl-C: a signal that ends the demo also ends its processes.
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        with display(plan, as_json) as (tell, progress):
            async with Network(directory, plan.peers) as network:
                facts = await Story(plan, network, tell, progress).run()
        return Outcome.of(plan, facts)

    try:
        return run(played())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


@contextmanager
def _directory(keep: Path | None) -> Iterator[Path]:
    """Yield a directory for the homes; it is kept if requested or if something fails."""
    if keep is not None:
        try:
            keep.mkdir(mode=0o700, parents=True)
        except OSError as error:
            raise Failure(
                f"{keep}: {error.strerror}; choose a directory that is not there yet", ExitCode.USAGE
            ) from error
        yield keep.resolve()
        return
    directory = Path(tempfile.mkdtemp(prefix="linnet-demo-"))
    try:
        yield directory
    except Failure:
        warn(f"kept for a look: {directory}")
        raise
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def display(plan: Plan, quiet: bool) -> Iterator[tuple[Tell, Progress]]:
    """Show the demo during the block; yields a function of the present step and the message counts."""
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
