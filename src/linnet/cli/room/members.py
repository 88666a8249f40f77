"""``linnet room members``: who is in a room."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say_json, say_table
from linnet.cli.room.options import RoomArgument

if TYPE_CHECKING:
    from linnet.cli.room.names import Names
    from linnet.node.room_types import MemberView

EPILOG = examples("linnet room members tea", "linnet room members tea --all --json")

COLUMNS = ("name", "membership", "level", "online", "devices ", "with keys ", "verified", "person")
All = Annotated[bool, typer.Option("--all", help="Those who left and those who are banned, too.")]


def members(
    room: RoomArgument, everyone: All = False, home: HomeOption = None, as_json: JsonOption = False
) -> None:
    """Who is in a room, who was invited or knocks, with what power, and who is online.

    Of an encrypted room also how many devices of each hold its keys. Who is verified has compared safety
    numbers with you: linnet room security ROOM --person WHO.
    """
    from linnet.cli.room.finding import find_room
    from linnet.cli.room.names import Names
    from linnet.cli.running_node import control

    with control(home) as node:
        found = find_room(node, room)
        reply = node.room_members(found.room)
    if as_json:
        say_json(reply)
        return
    say_table(COLUMNS, member_rows(reply.members, Names(reply.members), everyone, found.encrypted))


def member_rows(
    members: tuple[MemberView, ...], names: Names, everyone: bool, encrypted: bool
) -> list[tuple[object, ...]]:
    """One row for each."""
    return [
        (
            names.of(member.person),
            "relay" if member.relay else member.membership.value,
            "all (creator)" if member.level is None else member.level,
            member.online,
            len(member.devices),
            len(member.key_devices) if encrypted else None,
            member.verified,
            member.person,
        )
        for member in members
        if everyone or member.membership not in ("leave", "ban")
    ]
