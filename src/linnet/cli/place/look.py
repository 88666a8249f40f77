"""``linnet place look``: what a place is decorated with."""

from __future__ import annotations

from typing import Annotated

import typer

from linnet.cli.exits import ExitCode
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import plain, say, say_json, size_text, warn
from linnet.cli.place.options import PlaceArgument

EPILOG = examples(
    "linnet place look tea", "linnet place look tea _profile", "linnet place look tea --at _name_full"
)

Prefix = Annotated[str, typer.Argument(metavar="[_NAME]", help="Objects whose names begin so.")]
At = Annotated[
    bool,
    typer.Option("--at", help="The one object that fits the whole name best: it, or a more general one."),
]


def look(
    place: PlaceArgument,
    prefix: Prefix = "",
    at: At = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look at the objects of a place: from this node's own copy, so also when nobody can be reached."""
    from linnet.cli.place.finding import find_place
    from linnet.cli.running_node import control

    with control(home) as node:
        reply = node.objects(find_place(node, place), prefix, at)
    if as_json:
        say_json(reply)
        return
    for each in reply.objects:
        value = f"({size_text(len(each.value))})" if each.text is None else plain(each.text)
        say(f"{plain(each.name)}\t{value}")
    if not reply.objects:
        warn(f"there is nothing called {prefix}" if prefix else "there is nothing here yet")
        raise typer.Exit(ExitCode.FAILED if prefix else ExitCode.OK)
