"""``linnet content unsubscribe``: end a kept subscription."""

from __future__ import annotations

from typing import Annotated

import typer

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json

EPILOG = examples("linnet content unsubscribe lisbon")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="What it was called by --name.")]


def unsubscribe(name: NameArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """End a subscription that was kept by a name, with what waits in it. Others end with their readers."""
    from linnet.cli.running_node import control

    with control(home) as node:
        node.forget_content(name)
    if as_json:
        say_json({"unsubscribed": name})
    else:
        say(f"unsubscribed {name}")
