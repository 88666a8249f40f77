"""``linnet demo``: the command."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.options import JsonOption, examples
from linnet.cli.output import warn

if TYPE_CHECKING:
    from linnet.cli.demo.outcome import Outcome
    from linnet.cli.demo.story import Plan

EPILOG = examples("linnet demo", "linnet demo --messages 500 --peers 5", "linnet demo --keep run --json")

Peers = Annotated[int, typer.Option(min=3, max=64, help="Peers, besides tracker, standby and storage node.")]
Messages = Annotated[int, typer.Option(min=20, max=1_000_000, help="Messages in all, from two publishers.")]
Seed = Annotated[int, typer.Option(min=0, help="Chooses who publishes and who is killed.")]
Keep = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Leave homes, traces and what was received here; must not exist yet."),
]


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

    from linnet.cli.demo.display import display
    from linnet.cli.demo.network import Network
    from linnet.cli.demo.outcome import Outcome
    from linnet.cli.demo.story import Story
    from linnet.node.running import run

    async def played() -> Outcome:
        task = asyncio.current_task()
        if task is not None:
            # As Ctrl-C: whoever ends the demo ends its processes.
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        with display(plan, as_json) as (tell, progress):
            async with Network(directory, plan.peers) as network:
                facts = await Story(plan, network, tell, progress).run()
        return Outcome.of(plan, facts)

    try:
        return run(played())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


@contextlib.contextmanager
def _directory(keep: Path | None) -> Iterator[Path]:
    """Where the homes are: kept if that is wished or something failed, removed otherwise."""
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
