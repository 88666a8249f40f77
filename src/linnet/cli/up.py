"""``linnet up``: run the node of a home."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.moments import wall_clock
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json

if TYPE_CHECKING:
    from linnet.node.config import NodeConfig
    from linnet.node.library import Node

EPILOG = examples(
    "linnet up",
    "linnet up --tracker-role --listen 127.0.0.1:7700",
    "linnet up --store weather --store me/diary",
)

TrackerRole = Annotated[bool, typer.Option("--tracker-role", help="Build the graphs of streams for others.")]
Store = Annotated[
    list[str] | None,
    typer.Option("--store", metavar="STREAM", help="Keep this stream for others; once for each."),
]
Listens = Annotated[
    list[str] | None,
    typer.Option("--listen", metavar="HOST:PORT", help="Accept links here instead; port 0 takes a free one."),
]
Trackers = Annotated[
    list[str] | None,
    typer.Option("--tracker", metavar="KEY@HOST:PORT", help="A tracker, besides those configured."),
]
Full = Annotated[bool, typer.Option("--trace-full", help="Record everything, not only what goes wrong.")]


def up(
    tracker_role: TrackerRole = False,
    store: Store = None,
    listen: Listens = None,
    tracker: Trackers = None,
    trace_full: Full = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run the node of this home until Ctrl-C, SIGTERM or its control API stops it.

    Prints the address that others dial, then `ready`. Options add to linnet.toml for this run.
    """
    import asyncio

    from linnet.node.running import run, run_node

    config = configured(home, tracker_role, store or (), listen or (), tracker or (), trace_full)
    try:
        run(run_node(home, config, lambda node: _ready(node, as_json)))
    except asyncio.CancelledError:
        # A second signal, or the limit for stopping: it ends as whoever sent it meant.
        raise KeyboardInterrupt from None


def configured(
    home: Path | None,
    tracker_role: bool,
    store: tuple[str, ...] | list[str],
    listen: tuple[str, ...] | list[str],
    tracker: tuple[str, ...] | list[str],
    trace_full: bool,
) -> NodeConfig:
    """The home's configuration with what the command line adds; `ConfigError` if that is wrong."""
    from msgspec.structs import replace

    from linnet.cli.running_node import stream_name
    from linnet.node.config import StorageSection, check
    from linnet.node.home import open_home
    from linnet.trace.records import Level

    config = open_home(home, wall_clock()).config
    node, known = config.node, {rule.stream for rule in config.storage}
    if listen:
        # Whoever types an address means it: only a file that is copied around needs the second word.
        node = replace(node, listen=tuple(listen), listen_wide=True)
    if tracker:
        node = replace(node, trackers=(*node.trackers, *tracker))
    names = dict.fromkeys(stream_name(stream, home) for stream in store)
    config = replace(
        config,
        node=node,
        tracker=replace(config.tracker, enabled=config.tracker.enabled or tracker_role),
        storage=(*config.storage, *(StorageSection(name) for name in names if name not in known)),
        trace=replace(config.trace, level=Level.FULL) if trace_full else config.trace,
    )
    check(config)
    return config


def _ready(node: Node, as_json: bool) -> None:
    if as_json:
        say_json({"ready": True, "address": node.address, "label": node.identity.card.label})
        return
    say(f"address {node.address}")
    say("ready   Ctrl-C stops it")
