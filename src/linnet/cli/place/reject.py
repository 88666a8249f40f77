"""``linnet place reject``: turn somebody away."""

from __future__ import annotations

from typing import Annotated

import typer

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json
from linnet.cli.place.options import PersonArgument, PlaceArgument

EPILOG = examples(
    'linnet place reject club lp1… --say "members only"', "linnet place reject club lp1… --elsewhere la1…"
)

Say = Annotated[str, typer.Option("--say", metavar="TEXT", help="Why.")]
Elsewhere = Annotated[
    str | None, typer.Option("--elsewhere", metavar="ADDRESS", help="Another place for them.")
]


def reject(
    place: PlaceArgument,
    person: PersonArgument,
    words: Say = "",
    elsewhere: Elsewhere = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Turn somebody away who waits at the door; linnet place guests shows who does."""
    from linnet.cli.place.finding import choose_person, find_place
    from linnet.cli.running_node import control
    from linnet.places.address import parse_address

    if elsewhere is not None:
        parse_address(elsewhere)
    with control(home) as node:
        found = find_place(node, place)
        whom = choose_person(person, node.guests(found).waiting, "who wait at the door")
        node.reject(found, whom, words, elsewhere)
    if as_json:
        say_json({"place": found, "person": whom, "rejected": True})
    else:
        say(f"rejected {whom}")
