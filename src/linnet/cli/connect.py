"""``linnet connect``: keep a link to a device."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json, warn

if TYPE_CHECKING:
    from linnet.node.client import ControlClient
    from linnet.node.status_types import PeerView

EPILOG = examples(
    "linnet connect ld1…@192.0.2.7:7700",
    "linnet connect ld1…@192.0.2.7:7700 --patience 30 --json",
)

_LOOKS = 0.1
"""Seconds between looks at whether the link is there."""

Address = Annotated[
    str, typer.Argument(metavar="KEY@HOST:PORT", help="The device, and where it is: as its linnet up prints.")
]
Patience = Annotated[float, typer.Option("--patience", min=0.0, help="Seconds to wait for the link.")]


def connect(
    address: Address, patience: Patience = 10.0, home: HomeOption = None, as_json: JsonOption = False
) -> None:
    """Dial a device at once and keep the link while this node runs.

    It is how two nodes find each other again that have moved: all that they share goes on over the link, and
    both remember the new address.
    """
    from linnet.cli.running_node import control
    from linnet.identity.text import Sort, to_text
    from linnet.node.addresses import parse_contact

    device = to_text(Sort.DEVICE, parse_contact(address).peer)
    with control(home) as node:
        node.connect(address)
        link = _awaited(node, device, patience)
    is_up = link is not None and link.up
    reason = None if link is None or is_up else link.last_failure
    if as_json:
        say_json({"device": device, "up": is_up, "reason": reason})
    elif is_up:
        say(f"linked  {device}")
    else:
        warn(f"no link to {device} yet: {reason or 'no answer'}; the node goes on trying")
        warn(f"next    linnet doctor {address}")
    if not is_up:
        raise typer.Exit(ExitCode.FAILED)


def _awaited(node: ControlClient, device: str, patience: float) -> PeerView | None:
    """The link, when it is open or the time is over."""
    end = time.monotonic() + patience
    while True:
        link = next((each for each in node.peers().peers if each.device == device), None)
        if (link is not None and link.up) or time.monotonic() >= end:
            return link
        time.sleep(_LOOKS)
