"""``linnet room join``: join a room."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import counted, plain, say, say_json
from linnet.cli.room.options import PatienceOption

EPILOG = examples(
    "linnet room join li1…",
    "linnet room join - < invitation.txt",
    "linnet room join lt1… --at ld1…@192.0.2.7:7700",
    "linnet room join lt1… --at ld1…@192.0.2.7:7700 --knock",
)

Where = Annotated[
    str,
    typer.Argument(
        metavar="INVITATION", help="The text li1…, or a room's id lt1… with --at; - reads standard input."
    ),
]
At = Annotated[
    list[str] | None,
    typer.Option("--at", metavar="KEY@HOST:PORT", help="A member or relay to ask; once for each."),
]
Knock = Annotated[bool, typer.Option("--knock", help="Only ask to be let in.")]


def join(
    where: Where,
    at: At = None,
    knock: Knock = False,
    patience: PatienceOption = 20.0,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Join a room by the text of an invitation, which is all that it takes.

    A public room, or one that has invited you by name, is joined by its id and somebody to ask. For a room
    that you are in already, the addresses are taken in: so others are found again who have moved.
    """
    from linnet.cli.moments import wall_clock
    from linnet.cli.running_node import control
    from linnet.identity.text import Sort, from_text
    from linnet.node.addresses import parse_contact
    from linnet.node.room_types import JoinRoomRequest
    from linnet.rooms.invitation import parse_invitation

    text = "".join((sys.stdin.read() if where == "-" else where).split())
    contacts = tuple(at or ())
    for contact in contacts:
        parse_contact(contact)
    if text.lower().startswith(Sort.TOPIC):
        from_text(Sort.TOPIC, text)
        request = JoinRoomRequest(None, text, contacts, patience, knock)
        name = None
    else:
        invitation = parse_invitation(text, wall_clock())
        if not invitation.contacts and not contacts:
            raise Failure("this invitation names nobody to ask; add --at KEY@HOST:PORT", ExitCode.USAGE)
        request = JoinRoomRequest(text, None, contacts, patience, knock)
        name = invitation.name
    with control(home) as node:
        reply = node.join_room(request)
    if as_json:
        say_json(reply)
        return
    if reply.refreshed is not None:
        say(f"already in {plain(name or '')} {reply.room}".replace("  ", " "))
        say(f"tried   {counted(reply.refreshed, 'device')} at the addresses named; look at: linnet peers")
        return
    say(f"{'knocked' if knock else 'joined'}  {plain(name or '')} {reply.room}".replace("   ", "  "))
    if not knock:
        say(f"next    linnet chat {reply.room[:14]}")
