"""``linnet stream overlay``: give a stream another overlay while it goes on."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from linnet.cli.options import HomeOption, JsonOption, StreamArgument, examples
from linnet.cli.output import say, say_json

EPILOG = examples(
    "linnet stream overlay weather ring",
    "linnet stream overlay weather tracker",
    "linnet stream overlay weather default",
)


class Choice(StrEnum):
    """What a stream can have."""

    RING = "ring"
    TRACKER = "tracker"
    DEFAULT = "default"


Wanted = Annotated[
    Choice,
    typer.Argument(
        metavar="ring|tracker|default",
        help="ring: nodes find each other, without trackers; default: what linnet.toml says.",
    ),
]


def overlay(
    stream: StreamArgument, wanted: Wanted, home: HomeOption = None, as_json: JsonOption = False
) -> None:
    """Give a stream another overlay at this node, without losing anything; kept over restarts.

    The stream stays in the old one for ten minutes after it has neighbours in the new one. All its nodes have
    to change over within that time: those who do not are left behind in the old one.
    """
    from linnet.cli.running_node import control, stream_name
    from linnet.node.overlay_types import SwitchRequest
    from linnet.overlay.config import Overlay

    name = stream_name(stream, home)
    chosen = None if wanted is Choice.DEFAULT else Overlay(wanted.value)
    with control(home) as node:
        reply = node.switch_overlay(SwitchRequest(name, chosen))
    if as_json:
        say_json(reply)
    elif reply.overlay is reply.before:
        say(f"{name} stays with overlay {reply.overlay}")
    else:
        say(f"{name} changes over from overlay {reply.before} to {reply.overlay}")
