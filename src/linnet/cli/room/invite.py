"""``linnet room invite``: an invitation to hand over."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from linnet.cli.moments import clock_text, parse_duration
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json, say_raw, warn
from linnet.cli.room.options import RoomArgument

EPILOG = examples(
    "linnet room invite tea",
    "linnet room invite tea --for lp1… --lasts 2h",
    "linnet room invite tea --no-qr | mail -s tea bea@example.org",
)

For = Annotated[
    str | None, typer.Option("--for", metavar="PERSON", help="Only this person, lp1…, can use it.")
]
Lasts = Annotated[str, typer.Option("--lasts", metavar="TIME", help="How long it is good: 30m, 2h, 7d.")]
Announce = Annotated[
    bool,
    typer.Option("--announce", help="With --for: invite them in the room too, as who has knocked waits for."),
]
Qr = Annotated[
    bool | None, typer.Option("--qr/--no-qr", help="A QR code as well.", show_default="on a terminal")
]


def invite(
    room: RoomArgument,
    person: For = None,
    lasts: Lasts = "7d",
    announce: Announce = False,
    qr: Qr = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print an invitation: one line that is all that somebody needs to join.

    Whoever holds it can use it until it ends, and as often as they like, unless it is --for one person.
    """
    from linnet.cli.exits import ExitCode, Failure
    from linnet.cli.room.finding import find_room
    from linnet.cli.room.qr import qr_text
    from linnet.cli.running_node import control
    from linnet.identity.text import Sort, from_text

    if person is not None:
        from_text(Sort.PERSON, person)
    elif announce:
        raise Failure("--announce needs --for PERSON", ExitCode.USAGE)
    lifetime = parse_duration(lasts)
    with control(home) as node:
        reply = node.invite_to_room(find_room(node, room).room, person, lifetime, announce)
    if as_json:
        say_json(reply)
        return
    say(reply.text)
    if qr or (qr is None and sys.stdout.isatty()):
        say_raw(qr_text(reply.text, colours=sys.stdout.isatty()))
    who = "whoever holds it" if person is None else person
    warn(f"good for {who} until {clock_text(reply.expires_at)}")
    if not reply.contacts:
        warn("but it names nobody who can be dialled: this node does not listen, and no relay is known")
