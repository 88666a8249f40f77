"""``linnet room create``: found a room."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json

EPILOG = examples(
    "linnet room create tea",
    'linnet room create tea --topic "Who brings the cake?"',
    "linnet room create square --rule public",
)


class Rule(StrEnum):
    """Who may join."""

    INVITE = "invite"
    KNOCK = "knock"
    PUBLIC = "public"


Name = Annotated[str | None, typer.Argument(metavar="[NAME]", help="What it is called.")]
Topic = Annotated[str | None, typer.Option("--topic", metavar="TEXT", help="What it is about.")]
WhoJoins = Annotated[
    Rule, typer.Option("--rule", help="Who may join: who was invited, who knocks and is let in, everyone.")
]
Creators = Annotated[
    list[str] | None,
    typer.Option("--creator", metavar="PERSON", help="Has all power beside you, for ever; once for each."),
]


def create(
    name: Name = None,
    topic: Topic = None,
    rule: WhoJoins = Rule.INVITE,
    creator: Creators = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Found a room. You are its creator: nobody can ever take your power in it."""
    from linnet.cli.running_node import control
    from linnet.identity.text import Sort, from_text
    from linnet.node.room_types import CreateRoomRequest
    from linnet.rooms.content import JoinRule

    for person in creator or ():
        from_text(Sort.PERSON, person)
    with control(home) as node:
        reply = node.create_room(CreateRoomRequest(name, topic, JoinRule(rule), tuple(creator or ())))
    if as_json:
        say_json(reply)
        return
    say(f"room    {reply.room}")
    say(f"next    linnet room invite {name or reply.room}")
