"""``linnet place talk``: say something to the host alone."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json
from linnet.cli.place.options import PatienceOption, PlaceArgument, VariableOption, values

EPILOG = examples(
    'linnet place talk tea "One sugar, please"',
    "linnet place talk tea --method _request_tea --var _sugar=1 please",
)

Text = Annotated[str, typer.Argument(metavar="TEXT", help="What to say; - reads it from standard input.")]
Method = Annotated[str, typer.Option("--method", metavar="_NAME", help="What sort of request it is.")]


def talk(
    place: PlaceArgument,
    text: Text = "-",
    method: Method = "_request",
    variable: VariableOption = None,
    patience: PatienceOption = 20.0,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say something to the host of a place, and to nobody else. Ends when the host's device has it."""
    from linnet.cli.place.finding import find_place
    from linnet.cli.running_node import control
    from linnet.node.place_types import TalkRequest

    body = sys.stdin.buffer.read() if text == "-" else text.encode("utf-8", "surrogateescape")
    with control(home) as node:
        found = find_place(node, place)
        reply = node.talk(found, TalkRequest(method, None, body, values(variable), patience))
    if as_json:
        say_json(reply)
    else:
        say(f"told    {reply.voice}")
