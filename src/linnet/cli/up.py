"""``linnet up``: run the node of a home."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.moments import wall_clock
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json, warn
from linnet.node.start_options import ANYONE, Role, StartOptions, keep_options, read_options
from linnet.overlay.config import Overlay

if TYPE_CHECKING:
    from linnet.node.config import NodeConfig
    from linnet.node.home import Home
    from linnet.node.library import Node

EPILOG = examples(
    "linnet up",
    "linnet up --tracker-role --listen 127.0.0.1:7700",
    "linnet up --overlay ring",
    "linnet up --bootstrap ld1…@192.0.2.7:7700 --bootstrap ld1…@192.0.2.8:7700",
    "linnet up --store weather --store me/diary",
    "linnet up --role proxy --allow ld1… --listen 0.0.0.0:7700 --advertise proxy.example.org:7700",
    "linnet up --proxy ld1…@proxy.example.org:7700",
    "linnet up --role relay --listen 0.0.0.0:7700 --advertise relay.example.org:7700 --allow lp1…",
    "linnet up --fresh",
)

Roles = Annotated[
    list[Role] | None,
    typer.Option("--role", help="Do this for others: build graphs of streams, hold events, take part."),
]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="ID",
        help="Whose rooms the relay takes (lp1…), whom the proxy serves (ld1…), once for each; or anyone.",
    ),
]
Advertise = Annotated[
    list[str] | None,
    typer.Option("--advertise", metavar="HOST:PORT", help="Tell others this address instead of --listen."),
]
TrackerRole = Annotated[bool, typer.Option("--tracker-role", help="The same as --role tracker.")]
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
Bootstrap = Annotated[
    list[str] | None,
    typer.Option("--bootstrap", metavar="KEY@HOST:PORT", help="A node to begin with, without any tracker."),
]
OverlayOption = Annotated[
    Overlay | None,
    typer.Option("--overlay", help="Who says who the neighbours are; ring: nobody, nodes find each other."),
]
Proxies = Annotated[
    list[str] | None,
    typer.Option(
        "--proxy", metavar="KEY@HOST:PORT", help="Take part through this proxy alone, once for each."
    ),
]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Forget the options of earlier starts; linnet.toml alone counts.")
]
Full = Annotated[bool, typer.Option("--trace-full", help="Record everything in this run, not only faults.")]


def up(
    role: Roles = None,
    allow: Allow = None,
    tracker_role: TrackerRole = False,
    store: Store = None,
    listen: Listens = None,
    advertise: Advertise = None,
    tracker: Trackers = None,
    bootstrap: Bootstrap = None,
    overlay: OverlayOption = None,
    proxy: Proxies = None,
    fresh: Fresh = False,
    trace_full: Full = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run the node of this home until Ctrl-C, SIGTERM or its control API stops it.

    Prints the address that others dial, then `ready`. Options add to linnet.toml and are kept: without any it
    starts as the last time.
    """
    import asyncio

    from msgspec.structs import replace

    from linnet.cli.running_node import stream_name
    from linnet.node.home import open_home
    from linnet.node.running import run, run_node
    from linnet.trace.records import Level

    opened = open_home(home, wall_clock())
    given = StartOptions(
        role=tuple(dict.fromkeys([*(role or ()), *([Role.TRACKER] if tracker_role else ())])),
        allow=tuple(allow or ()),
        store=tuple(stream_name(stream, home) for stream in store or ()),
        listen=tuple(listen or ()),
        advertise=tuple(advertise or ()),
        tracker=tuple(tracker or ()),
        bootstrap=tuple(bootstrap or ()),
        overlay=overlay,
        proxy=tuple(proxy or ()),
    )
    is_new = fresh or given != StartOptions()
    options = given if is_new else read_options(opened.home)
    _check_allow(options, opened.config)
    config = options.add_to(opened.config)
    if trace_full:
        config = replace(config, trace=replace(config.trace, level=Level.FULL))

    dropped = _dropped(opened.home, given) if is_new and not fresh else StartOptions()

    def ready(node: Node) -> None:
        if dropped != StartOptions():
            warn(
                f"linnet: kept options that are not used any more: {dropped}; "
                f"to have them back: linnet up {given.joined(dropped)}"
            )
        if is_new:
            _keep(opened.home, given)
        _tell_ready(node, options, as_kept=not is_new, as_json=as_json)

    try:
        run(run_node(home, config, ready))
    except asyncio.CancelledError:
        # A second signal, or the limit for stopping: it ends as whoever sent it meant.
        raise KeyboardInterrupt from None


def _check_allow(options: StartOptions, config: NodeConfig) -> None:
    """Whoever is to be served needs a role that serves them."""
    proxy = config.proxy.enabled or Role.PROXY in options.role
    relay = config.relay.enabled or Role.RELAY in options.role
    if options.devices and not proxy:
        raise Failure("--allow with a device is about a proxy: add --role proxy", ExitCode.USAGE)
    if options.people and not relay and not (proxy and options.people == (ANYONE,)):
        raise Failure("--allow is about a relay: add --role relay", ExitCode.USAGE)


def _dropped(home: Home, given: StartOptions) -> StartOptions:
    """The options of the last start that this one goes without."""
    from linnet.node.home import HomeError

    try:
        return read_options(home).lacking_in(given)
    except HomeError:  # Nobody knows them any more, and new ones are named, as is advised then.
        return StartOptions()


def _keep(home: Home, options: StartOptions) -> None:
    try:
        keep_options(home, options)
    except OSError as error:
        warn(f"{home.start}: the options could not be kept for later starts: {error.strerror or error}")


def _tell_ready(node: Node, options: StartOptions, as_kept: bool, as_json: bool) -> None:
    for text in node.ports.moved:
        warn(text)
    if as_json:
        told = {"ready": True, "address": node.address, "label": node.identity.card.label}
        say_json({**told, "options": options})
        return
    say(f"address {node.address}")
    if as_kept and options != StartOptions():
        say(f"options {options}, as at the last start")
    say("ready   Ctrl-C stops it")
