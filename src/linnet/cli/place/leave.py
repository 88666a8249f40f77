"""``linnet place leave``: be a guest no longer, or only not now."""

from __future__ import annotations

from typing import Annotated

import typer

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json
from linnet.cli.place.options import PlaceArgument

EPILOG = examples("linnet place leave tea", "linnet place leave tea --for-now")

ForNow = Annotated[bool, typer.Option("--for-now", help="Only disconnect: you are still a guest.")]


def leave(
    place: PlaceArgument, for_now: ForNow = False, home: HomeOption = None, as_json: JsonOption = False
) -> None:
    """Be a guest of a place no longer: the host tells everyone. What is kept of it here stays."""
    from linnet.cli.place.finding import find_place
    from linnet.cli.running_node import control

    with control(home) as node:
        found = find_place(node, place)
        node.leave_place(found, not for_now)
    if as_json:
        say_json({"place": found, "left": not for_now})
    else:
        say(f"{'disconnected from' if for_now else 'left'} {found}")
