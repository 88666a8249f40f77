"""``linnet place admit``: let somebody in."""

from __future__ import annotations

from typing import Annotated

import typer

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json
from linnet.cli.place.options import PersonArgument, PlaceArgument

EPILOG = examples("linnet place admit club lp1…", "linnet place admit club lp1… --since 1")

Since = Annotated[
    int | None,
    typer.Option("--since", metavar="N", min=0, help="The first message that is open to them."),
]


def admit(
    place: PlaceArgument,
    person: PersonArgument,
    since: Since = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let somebody in who waits at the door; linnet place guests shows who does."""
    from linnet.cli.place.finding import choose_person, find_place
    from linnet.cli.running_node import control

    with control(home) as node:
        found = find_place(node, place)
        whom = choose_person(person, node.guests(found).waiting, "who wait at the door")
        reply = node.admit(found, whom, since)
    if as_json:
        say_json(reply)
    else:
        say(f"admitted {whom}")
