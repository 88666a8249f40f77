"""``linnet place receipts``: which guests have a message."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json, say_table
from linnet.cli.place.options import PlaceArgument

EPILOG = examples(
    "linnet place receipts tea",
    "linnet place receipts tea 12",
    "linnet place receipts tea --json | jq '[.receipts[] | select(.state == \"pending\")] | length'",
)


def receipts(
    place: PlaceArgument,
    message: Annotated[
        int | None,
        typer.Argument(min=1, help="Its number; the last one if left out.", show_default=False),
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Which guests have a message, by their signed receipts: delivered, pending, or closed to them.

    Guests give receipts every few seconds; for the host and its co-hosts.
    """
    from linnet.cli.place.finding import find_place
    from linnet.cli.running_node import control

    with control(home) as node:
        found = find_place(node, place)
        number = message or node.place(found).place.message
        reply = node.place_receipts(found, number) if number > 0 else None
    if reply is None:
        say("nothing was said there yet")
    elif as_json:
        say_json(reply)
    elif reply.receipts:
        rows = [(each.person, each.state, _when(each.at_ms)) for each in reply.receipts]
        say_table(("person", f"message {reply.message}", "receipt given"), rows)
    else:
        say("nobody is in yet: hand over the address that linnet place status shows")


def _when(at_ms: int | None) -> str:
    return "-" if at_ms is None else f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"
