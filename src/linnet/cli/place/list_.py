"""``linnet place list``: every place of the node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import plain, say, say_json, say_table

if TYPE_CHECKING:
    from linnet.node.place_types import PlaceView

EPILOG = examples("linnet place list", "linnet place list --json | jq '.places[].name'")

COLUMNS = ("name", "place", "you", "policy", "guests ", "messages ", "missing ", "objects ")


def list_(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Every place that this node hosts or visits."""
    from linnet.cli.running_node import control

    with control(home) as node:
        reply = node.places()
    if as_json:
        say_json(reply)
    elif reply.places:
        say_table(COLUMNS, map(row, reply.places))
    else:
        say("no places: found one with linnet place host, or enter one with linnet place enter")


def row(place: PlaceView) -> tuple[object, ...]:
    """A place in a table."""
    return (
        None if place.name is None else plain(place.name),
        place.place,
        place.role,
        place.deed.policy.value,
        place.guests,
        place.message,
        place.missing,
        place.objects,
    )
