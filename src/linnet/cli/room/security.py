"""``linnet room security``: who holds a room's keys, who is who, and what a thief could read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import plain, say, say_json, say_table

if TYPE_CHECKING:
    from linnet.cli.room.names import Names
    from linnet.node.client import ControlClient
    from linnet.node.control_types import RoomView

EPILOG = examples(
    "linnet room security tea",
    "linnet room security",
    "linnet room security tea --person ada",
    "linnet room security tea --person ada --verify",
    "linnet room security tea --json | jq .theft",
)

Room = Annotated[
    str | None,
    typer.Argument(metavar="[ROOM]", help="The room's name, its id lt1…, or a beginning of it; else all."),
]
Person = Annotated[
    str | None,
    typer.Option("--person", metavar="WHO", help="The safety number to compare with this person."),
]
Verify = Annotated[
    bool | None,
    typer.Option(
        "--verify/--unverify", help="Note that you have compared it and it is equal, or take it back."
    ),
]


def security(
    room: Room = None,
    person: Person = None,
    verify: Verify = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show who holds the keys of a room, what your next message waits for, and what a thief could read.

    With --person, show the safety number of you and that person: if both of you see the same, by voice or
    side by side, nobody stands between you. Without a ROOM, show all rooms in short.
    """
    from linnet.cli.room.finding import find_room
    from linnet.cli.running_node import control
    from linnet.core.errors import BadText

    if verify is not None and person is None:
        raise BadText("say who was compared: --person WHO")
    with control(home) as node:
        found = None if room is None else find_room(node, room)
        if person is not None:
            _person(node, found, person, verify, as_json)
        elif found is not None:
            _room(node, found, as_json)
        else:
            _overview(node, as_json)


def _room(node: ControlClient, room: RoomView, as_json: bool) -> None:
    from linnet.cli.room import security_wording as wording
    from linnet.cli.room.alarms import alarm_text

    reply = node.room_security(room.room)
    if as_json:
        say_json(reply)
        return
    say(wording.protection(reply, plain(room.name or room.room)))
    if reply.encrypted:
        say("")
        say_table(wording.COLUMNS, wording.device_rows(reply, _names(node, room)))
        say("")
        for line in (*wording.sending(reply), *wording.unread(reply), "", *wording.theft(reply)):
            say(line)
    for warning in reply.warnings:
        say(alarm_text(warning))


def _names(node: ControlClient, room: RoomView) -> Names:
    from linnet.cli.room.names import Names

    return Names(node.room_members(room.room).members, node.status().person)


def _overview(node: ControlClient, as_json: bool) -> None:
    from linnet.cli.room import security_wording as wording

    rooms = [room for room in node.rooms().rooms if not room.relay]
    replies = [node.room_security(room.room) for room in rooms]
    if as_json:
        say_json({"rooms": replies})
    elif rooms:
        say_table(wording.OVERVIEW, [wording.overview(*each) for each in zip(rooms, replies, strict=True)])
    else:
        say("no rooms: found one with linnet room create, or join one with linnet room join")


def _person(
    node: ControlClient, room: RoomView | None, text: str, verify: bool | None, as_json: bool
) -> None:
    from linnet.cli.room import security_wording as wording
    from linnet.cli.room.finding import find_person, is_whole
    from linnet.core.errors import BadText
    from linnet.identity.text import Sort

    if room is None and not is_whole(Sort.PERSON, text):
        raise BadText("say in which room this person is, or give the whole id lp1…")
    who = find_person(node, "" if room is None else room.room, text)
    reply = node.person(who) if verify is None else node.verify_person(who, verify)
    if as_json:
        say_json(reply)
        return
    for line in wording.person(reply):
        say(line)
