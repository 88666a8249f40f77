"""``linnet room relays``: who holds a room's events for those who are away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json, say_table
from linnet.cli.room.options import PatienceOption, RoomArgument

if TYPE_CHECKING:
    from linnet.node.control_types import RelayView

EPILOG = examples(
    "linnet room relays tea",
    "linnet room relays tea --add ld1…@relay.example.org:7700",
    "linnet room relays tea --drop ld1…",
)

COLUMNS = ("relay", "state", "in use", "round trip", "load", "addresses")
Add = Annotated[
    str | None, typer.Option("--add", metavar="KEY@HOST:PORT", help="Ask this relay to serve the room.")
]
Drop = Annotated[str | None, typer.Option("--drop", metavar="KEY", help="Take this relay out, ld1….")]


def relays(
    room: RoomArgument,
    add: Add = None,
    drop: Drop = None,
    patience: PatienceOption = 20.0,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the relays of a room, add one or take one out.

    A relay holds events for members who are away. It cannot speak in the room.
    """
    from linnet.cli.room.finding import find_room
    from linnet.cli.room.outcome import tell_sent
    from linnet.cli.running_node import control
    from linnet.identity.text import Sort, from_text
    from linnet.node.addresses import parse_contact

    if add is not None and drop is not None:
        raise Failure("give --add or --drop, one at a time", ExitCode.USAGE)
    if add is not None:
        parse_contact(add)
    relay = None if drop is None else drop.partition("@")[0]
    if relay is not None:
        from_text(Sort.DEVICE, relay)
    with control(home) as node:
        found = find_room(node, room)
        if add is not None:
            tell_sent(node.add_relay(found.room, add, patience), f"relay   {add}", as_json)
        elif relay is not None:
            tell_sent(node.drop_relay(found.room, relay), f"no relay any more: {relay}", as_json)
        elif as_json:
            say_json({"room": found.room, "relays": found.relays})
        elif found.relays:
            say_table(COLUMNS, map(row, found.relays))
        else:
            say("no relay: who is away gets events only from members who are online then; add one with --add")


def row(relay: RelayView) -> tuple[object, ...]:
    """A relay in a table."""
    if relay.up:
        state = "up"
    elif relay.failure:
        state = f"down: {relay.failure}"
    else:
        state = "linking" if relay.chosen else "idle: not linked now"
    trip = None if relay.rtt is None else f"{relay.rtt * 1000:.1f} ms"
    load = None if relay.load is None else f"{relay.load:.0%}"
    return (relay.relay, state, relay.chosen, trip, load, relay.hints)
