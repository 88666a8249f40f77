"""``linnet room create``: found a room."""

from __future__ import annotations

import shlex
from enum import StrEnum
from typing import Annotated

import typer

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json

EPILOG = examples(
    "linnet room create tea",
    'linnet room create tea --topic "Who brings the cake?"',
    "linnet room create square --public",
    "linnet room create archive --history shared",
)


class Rule(StrEnum):
    """Who may join."""

    INVITE = "invite"
    KNOCK = "knock"
    PUBLIC = "public"


class History(StrEnum):
    """What newcomers may read."""

    FROM_NOW = "from-now"
    SHARED = "shared"


Name = Annotated[str | None, typer.Argument(metavar="[NAME]", help="What it is called.")]
Topic = Annotated[str | None, typer.Option("--topic", metavar="TEXT", help="What it is about.")]
WhoJoins = Annotated[
    Rule, typer.Option("--rule", help="Who may join: who was invited, who knocks and is let in, everyone.")
]
Public = Annotated[
    bool,
    typer.Option("--public", help="Everyone may join, and whoever carries it can read it: not encrypted."),
]
Before = Annotated[
    History,
    typer.Option("--history", help="What newcomers may read: from now on, or what members share."),
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
    public: Public = False,
    history: Before = History.FROM_NOW,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Found a room. You are its creator: nobody can ever take your power in it.

    What is said in it can be read by its members alone, unless it is public. That is decided here, for ever.
    """
    from linnet.cli.running_node import control
    from linnet.identity.text import Sort, from_text
    from linnet.node.room_types import CreateRoomRequest
    from linnet.rooms.content import JoinRule, Newcomers

    for person in creator or ():
        from_text(Sort.PERSON, person)
    with control(home) as node:
        chosen = JoinRule.PUBLIC if public else JoinRule(rule)
        newcomers = Newcomers(history.replace("-", "_"))
        request = CreateRoomRequest(name, topic, chosen, tuple(creator or ()), newcomers)
        reply = node.create_room(request)
    if as_json:
        say_json(reply)
        return
    say(f"room    {reply.room}")
    say(f"next    linnet room invite {shlex.quote(name or reply.room)}")
