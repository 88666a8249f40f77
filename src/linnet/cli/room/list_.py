"""``linnet room list``: every room of the node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import plain, say, say_json, say_table

if TYPE_CHECKING:
    from linnet.node.control_types import RoomView

EPILOG = examples("linnet room list", "linnet room list --json | jq '.rooms[].name'")

COLUMNS = (
    "name",
    "room",
    "you",
    "encrypted",
    "members ",
    "online ",
    "relays ",
    "events ",
    "waiting ",
    "unsent ",
)


def list_(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Every room of this node, whether it is encrypted, who is online and what has not gone out yet."""
    from linnet.cli.running_node import control

    with control(home) as node:
        reply = node.rooms()
    if as_json:
        say_json(reply)
    elif reply.rooms:
        say_table(COLUMNS, map(row, reply.rooms))
    else:
        say("no rooms: found one with linnet room create, or join one with linnet room join")


def row(room: RoomView) -> tuple[object, ...]:
    """A room in a table."""
    return (
        None if room.name is None else plain(room.name),
        room.room,
        "relay" if room.relay else room.membership.value,
        room.encrypted,
        room.members,
        len(room.online),
        f"{sum(relay.up for relay in room.relays)} of {len(room.relays)}",
        room.events,
        room.waiting,
        room.unsent,
    )
