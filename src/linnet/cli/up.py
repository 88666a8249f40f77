"""``linnet up``: run the node of a home."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.moments import wall_clock
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json, warn
from linnet.overlay.config import Overlay

if TYPE_CHECKING:
    from linnet.node.config import NodeConfig
    from linnet.node.library import Node

ANYONE = "anyone"
"""In place of a person: whoever asks."""

EPILOG = examples(
    "linnet up",
    "linnet up --tracker-role --listen 127.0.0.1:7700",
    "linnet up --overlay ring",
    "linnet up --bootstrap ld1…@192.0.2.7:7700 --bootstrap ld1…@192.0.2.8:7700",
    "linnet up --store weather --store me/diary",
    "linnet up --role proxy --allow ld1… --listen 0.0.0.0:7700 --advertise proxy.example.org:7700",
    "linnet up --proxy ld1…@proxy.example.org:7700",
    "linnet up --role relay --listen 0.0.0.0:7700 --advertise relay.example.org:7700 --allow lp1…",
)


class Role(StrEnum):
    """What a node can do for others."""

    TRACKER = "tracker"
    RELAY = "relay"
    PROXY = "proxy"


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
Full = Annotated[bool, typer.Option("--trace-full", help="Record everything, not only what goes wrong.")]


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
    trace_full: Full = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run the node of this home until Ctrl-C, SIGTERM or its control API stops it.

    Prints the address that others dial, then `ready`. Options add to linnet.toml for this run.
    """
    import asyncio

    from linnet.node.running import run, run_node

    roles = [*(role or ()), *([Role.TRACKER] if tracker_role else ())]
    config = configured(
        home, Role.TRACKER in roles, store or (), listen or (), tracker or (), trace_full, advertise or ()
    )
    config = with_roles(config, roles, allow or [])
    config = without_trackers(config, overlay, bootstrap or [])
    config = behind_proxies(config, proxy or [])
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
    advertise: tuple[str, ...] | list[str] = (),
) -> NodeConfig:
    """The home's configuration with what the command line adds; `ConfigError` if that is wrong."""
    from msgspec.structs import replace

    from linnet.cli.running_node import stream_name
    from linnet.node.config import StorageSection
    from linnet.node.config_problems import check
    from linnet.node.home import open_home
    from linnet.trace.records import Level

    config = open_home(home, wall_clock()).config
    node, known = config.node, {rule.stream for rule in config.storage}
    if listen:
        # Whoever types an address means it: only a file that is copied around needs the second word.
        node = replace(node, listen=tuple(listen), listen_wide=True)
    if advertise:
        node = replace(node, advertise=tuple(advertise))
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


def with_roles(config: NodeConfig, roles: list[Role], allow: list[str]) -> NodeConfig:
    """The same with what the node does for others, and for whom; `ConfigError` if that is wrong."""
    devices = [each for each in allow if each.startswith("ld1")]
    people = [each for each in allow if each not in devices]
    config = with_proxy(config, Role.PROXY in roles, devices, ANYONE in allow)
    if people == [ANYONE] and config.proxy.enabled and Role.RELAY not in roles and not config.relay.enabled:
        people = []
    return with_relay(config, Role.RELAY in roles, people)


def with_proxy(config: NodeConfig, proxy_role: bool, devices: list[str], anyone: bool) -> NodeConfig:
    """The same with the proxy role and whom it serves; `ConfigError` if that is wrong."""
    from msgspec.structs import replace

    from linnet.node.config_problems import check

    proxy = replace(config.proxy, enabled=config.proxy.enabled or proxy_role)
    if anyone and proxy.enabled:
        proxy = replace(proxy, open=True, allow=())
    elif devices:
        proxy = replace(proxy, open=False, allow=(*proxy.allow, *devices))
    if devices and not proxy.enabled:
        raise Failure("--allow with a device is about a proxy: add --role proxy", ExitCode.USAGE)
    config = replace(config, proxy=proxy)
    check(config)
    return config


def behind_proxies(config: NodeConfig, proxies: list[str]) -> NodeConfig:
    """The same on the edge, with these proxies before those configured."""
    from msgspec.structs import replace

    from linnet.node.config_problems import check

    if not proxies:
        return config
    known = (each for each in config.edge.proxies if each not in proxies)
    config = replace(config, edge=replace(config.edge, proxies=(*proxies, *known)))
    check(config)
    return config


def with_relay(config: NodeConfig, relay_role: bool, allow: list[str]) -> NodeConfig:
    """The same with the relay role and whom it serves; `ConfigError` if that is wrong."""
    from msgspec.structs import replace

    from linnet.node.config_problems import check
    from linnet.rooms.config import RelayPolicy

    relay = replace(config.relay, enabled=config.relay.enabled or relay_role)
    if ANYONE in allow:
        relay = replace(relay, policy=RelayPolicy.OPEN, allow=())
    elif allow:
        relay = replace(relay, policy=RelayPolicy.ALLOW, allow=(*relay.allow, *allow))
    if allow and not relay.enabled:
        raise Failure("--allow is about a relay: add --role relay", ExitCode.USAGE)
    config = replace(config, relay=relay)
    check(config)
    return config


def without_trackers(config: NodeConfig, overlay: Overlay | None, bootstrap: list[str]) -> NodeConfig:
    """The same with an overlay and nodes to begin with; whoever names some and no tracker means the ring."""
    from msgspec.structs import replace

    from linnet.node.config_problems import check

    node = replace(config.node, bootstrap=(*config.node.bootstrap, *bootstrap))
    if overlay is None and bootstrap and not node.trackers:
        overlay = Overlay.RING
    config = replace(config, node=node if overlay is None else replace(node, overlay=overlay))
    check(config)
    return config


def _ready(node: Node, as_json: bool) -> None:
    for text in node.ports.moved:
        warn(text)
    if as_json:
        say_json({"ready": True, "address": node.address, "label": node.identity.card.label})
        return
    say(f"address {node.address}")
    say("ready   Ctrl-C stops it")
