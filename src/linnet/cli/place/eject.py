"""``linnet place eject``: put a guest out."""

from __future__ import annotations

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json
from linnet.cli.place.options import PersonArgument, PlaceArgument

EPILOG = examples("linnet place eject tea lp1…", "linnet place eject tea lp1abcd")


def eject(
    place: PlaceArgument, person: PersonArgument, home: HomeOption = None, as_json: JsonOption = False
) -> None:
    """Put a guest out of a place: all are told, and what is said from then on is closed to them."""
    from linnet.cli.place.finding import choose_person, find_place
    from linnet.cli.running_node import control

    with control(home) as node:
        found = find_place(node, place)
        people = [each.person for each in node.guests(found).guests]
        whom = choose_person(person, people, "who are in")
        reply = node.eject(found, whom)
    if as_json:
        say_json(reply)
    else:
        say(f"ejected {whom}")
