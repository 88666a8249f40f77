"""``linnet init``: a home with new keys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.moments import wall_clock
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json

if TYPE_CHECKING:
    from linnet.node.config import NodeConfig
    from linnet.node.home import Opened

EPILOG = examples(
    'linnet init --label "kitchen pi"',
    "linnet init --tracker ld1…@192.0.2.7:7700 --tracker ld1…@192.0.2.8:7700",
    "linnet init --home /tmp/second",
)

Label = Annotated[str, typer.Option("--label", metavar="NAME", help="A name for this device.")]
Trackers = Annotated[
    list[str] | None,
    typer.Option("--tracker", metavar="KEY@HOST:PORT", help="A tracker of the network; once for each."),
]
Listens = Annotated[
    list[str] | None,
    typer.Option("--listen", metavar="HOST:PORT", help="Where to accept links; once for each."),
]


def init(
    label: Label = "",
    tracker: Trackers = None,
    listen: Listens = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a home: a person's key, this device's key and card, and a commented configuration.

    Nothing is overwritten. Every node of a network needs the same trackers; what a node that is one
    prints at its start goes here.
    """
    from linnet.node import home as homes

    config = first_config(label, tracker, listen)
    tell_home(homes.init(homes.home_path(home), wall_clock(), config), home, as_json)


def first_config(label: str, tracker: list[str] | None, listen: list[str] | None) -> NodeConfig:
    """The configuration of a new home; `ConfigError` if it is wrong."""
    from msgspec.structs import replace

    from linnet.node.config import NodeConfig, NodeSection
    from linnet.node.config_problems import check

    section = NodeSection(label=label, trackers=tuple(tracker or ()))
    if listen:
        section = replace(section, listen=tuple(listen), listen_wide=True)
    config = NodeConfig(node=section)
    check(config)
    return config


def tell_home(opened: Opened, given: Path | None, as_json: bool) -> None:
    """Who a new home is, and what to do next."""
    from linnet.identity.text import Sort, to_text

    found = {
        "home": str(opened.home.path),
        "person": to_text(Sort.PERSON, opened.identity.author),
        "device": to_text(Sort.DEVICE, opened.identity.peer),
    }
    if as_json:
        say_json(found)
        return
    for name, value in found.items():
        say(f"{name:8}{value}")
    say(f"next    linnet up{'' if given is None else f' --home {given}'}")
