"""``linnet up``: run the node of a home."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.moments import wall_clock
from linnet.cli.options import Options, with_examples
from linnet.cli.output import warn
from linnet.cli.running_node import Session
from linnet.node.start_options import ANYONE, Role, StartOptions, keep_options, read_options
from linnet.overlay.config import Overlay

if TYPE_CHECKING:
    from linnet.node.config import NodeConfig
    from linnet.node.home import Home
    from linnet.node.library import Node


@dataclass(frozen=True)
class UpOptions(Options):
    """The options of a run of the node."""

    role: Annotated[
        list[Role] | None,
        typer.Option(
            "--role", help="Serve others: build the graphs of streams, hold events, or take part for them."
        ),
    ] = None
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow",
            metavar="ID",
            help="A person whose rooms the relay takes (lp1…), a device that the proxy serves (ld1…), or "
            "anyone; once for each.",
        ),
    ] = None
    tracker_role: Annotated[bool, typer.Option("--tracker-role", help="The same as --role tracker.")] = False
    store: Annotated[
        list[str] | None,
        typer.Option("--store", metavar="STREAM", help="Keep this stream for others; once for each."),
    ] = None
    listen: Annotated[
        list[str] | None,
        typer.Option(
            "--listen", metavar="HOST:PORT", help="Accept links here instead; port 0 takes a free one."
        ),
    ] = None
    advertise: Annotated[
        list[str] | None,
        typer.Option(
            "--advertise", metavar="HOST:PORT", help="Tell others this address instead of --listen."
        ),
    ] = None
    tracker: Annotated[
        list[str] | None,
        typer.Option("--tracker", metavar="KEY@HOST:PORT", help="A tracker, besides those configured."),
    ] = None
    bootstrap: Annotated[
        list[str] | None,
        typer.Option(
            "--bootstrap", metavar="KEY@HOST:PORT", help="A node to begin with, without any tracker."
        ),
    ] = None
    overlay: Annotated[
        Overlay | None,
        typer.Option(
            "--overlay", help="Who chooses neighbours: a tracker; or, with ring, the nodes themselves."
        ),
    ] = None
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            "--proxy", metavar="KEY@HOST:PORT", help="Take part through this proxy alone, once for each."
        ),
    ] = None
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Forget the options of earlier starts; linnet.toml alone counts.")
    ] = False
    trace_full: Annotated[
        bool, typer.Option("--trace-full", help="Record everything in this run, not only faults.")
    ] = False

    def start_options(self, session: Session) -> StartOptions:
        """Return the options that are kept for later starts."""
        roles = [*(self.role or ()), *([Role.TRACKER] if self.tracker_role else ())]
        return StartOptions(
            role=tuple(dict.fromkeys(roles)),
            allow=tuple(self.allow or ()),
            store=tuple(map(session.stream_name, self.store or ())),
            listen=tuple(self.listen or ()),
            advertise=tuple(self.advertise or ()),
            tracker=tuple(self.tracker or ()),
            bootstrap=tuple(self.bootstrap or ()),
            overlay=self.overlay,
            proxy=tuple(self.proxy or ()),
        )


@with_examples(
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
def up(options: UpOptions, session: Session) -> None:
    """Run the node of this home until Ctrl-C, SIGTERM or a request to its control API stops it.

    Prints the address that others dial, then `ready`. The options add to linnet.toml and are kept: without
    options the node starts as it did the last time.
    """
    import asyncio

    from msgspec.structs import replace

    from linnet.node.home import open_home
    from linnet.node.running import run, run_node
    from linnet.trace.records import Level

    opened = open_home(session.home, wall_clock())
    given = options.start_options(session)
    is_new = options.fresh or given != StartOptions()
    used = given if is_new else read_options(opened.home)
    _check_allow(used, opened.config)
    config = used.add_to(opened.config)
    if options.trace_full:
        config = replace(config, trace=replace(config.trace, level=Level.FULL))

    dropped = _dropped(opened.home, given) if is_new and not options.fresh else StartOptions()

    def ready(node: Node) -> None:
        if dropped != StartOptions():
            warn(
                f"linnet: kept options that are not used any more: {dropped}; "
                f"to have them back: linnet up {given.joined(dropped)}"
            )
        if is_new:
            _keep(opened.home, given)
        _say_ready(node, used, session, as_kept=not is_new)

    try:
        run(run_node(session.home, config, ready))
    except asyncio.CancelledError:
        # A second signal, or the limit for stopping: end as the sender wanted.
        raise KeyboardInterrupt from None


def _check_allow(options: StartOptions, config: NodeConfig) -> None:
    """Raise `Failure` if --allow names clients, but no role serves them."""
    proxy = config.proxy.enabled or Role.PROXY in options.role
    relay = config.relay.enabled or Role.RELAY in options.role
    if options.devices and not proxy:
        raise Failure("--allow with a device is about a proxy: add --role proxy", ExitCode.USAGE)
    if options.people and not relay and not (proxy and options.people == (ANYONE,)):
        raise Failure("--allow is about a relay: add --role relay", ExitCode.USAGE)


def _dropped(home: Home, given: StartOptions) -> StartOptions:
    """Return the options of the last start that this one lacks."""
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


def _say_ready(node: Node, options: StartOptions, session: Session, as_kept: bool) -> None:
    for text in node.ports.moved:
        warn(text)
    told = {"ready": True, "address": node.address, "label": node.identity.card.label, "options": options}
    lines = [f"address {node.address}", "ready   Ctrl-C stops it"]
    if as_kept and options != StartOptions():
        lines.insert(1, f"options {options}, as at the last start")
    session.say(told, lines)
