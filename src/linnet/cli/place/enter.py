"""``linnet place enter``: enter a place, or come back to it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import plain, say, say_json, warn
from linnet.cli.place.options import PatienceOption

EPILOG = examples(
    "linnet place enter la1…",
    "linnet place enter - < address.txt",
    "linnet place enter music.alice",
    'linnet place enter la1… --say "It is me, Bea"',
    "linnet place enter lt1… --at ld1…@192.0.2.7:7700",
)

Where = Annotated[
    str,
    typer.Argument(
        metavar="ADDRESS", help="The text la1…, a name such as music.alice, or an id lt1…; - reads it."
    ),
]
At = Annotated[
    list[str] | None,
    typer.Option("--at", metavar="KEY@HOST:PORT", help="Somebody to ask; once for each."),
]
Say = Annotated[str, typer.Option("--say", metavar="TEXT", help="What the host is told at the door.")]


def enter(
    where: Where,
    at: At = None,
    words: Say = "",
    patience: PatienceOption = 20.0,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Enter a place by its address. Where the host decides who comes in, this says so and waits for it.

    The node goes on to wait at the door when this ends, and is in when the host admits it. Whoever has been
    in and only disconnected comes in again without being asked about.
    """
    from msgspec.structs import replace

    from linnet.cli.running_node import control
    from linnet.core.reasons import Reason
    from linnet.node.addresses import parse_contact
    from linnet.node.caller import ControlError
    from linnet.node.place_types import EnterRequest
    from linnet.places.address import is_address, parse_address

    text = "".join((sys.stdin.read() if where == "-" else where).split())
    given = parse_address(text).name if is_address(text) else None
    for contact in at or ():
        parse_contact(contact)
    request = EnterRequest(text, tuple(at or ()), words, patience, waits=False)
    with control(home) as node:
        try:
            try:
                reply = node.enter_place(request)
            except ControlError as error:
                if error.reason != Reason.WAITING:
                    raise
                warn("the host decides who comes in, and was told of you: waiting for the answer")
                reply = node.enter_place(replace(request, waits=True))
        except ControlError as error:
            if as_json:
                told = {"reason": error.reason, "detail": error.detail, "elsewhere": error.elsewhere or None}
                say_json({"entered": False, **told})
            raise
    if as_json:
        say_json(reply)
        return
    name = plain(reply.place.name or given or "")
    say(f"entered {name} {reply.place.place}".replace("  ", " "))
    say(f"next    linnet place watch {reply.place.place[:14]}")
