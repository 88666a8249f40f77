"""``linnet place host``: found a place."""

from __future__ import annotations

import shlex
from enum import StrEnum
from typing import Annotated

import typer

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json

EPILOG = examples(
    "linnet place host tea",
    "linnet place host club --policy closed",
    "linnet place host news --cohost lp1… --keeper ld1…@192.0.2.7:7700",
)


class Policy(StrEnum):
    """Who comes in, and what of the past is open to them."""

    ANONYMOUS = "anonymous"
    PUBLIC = "public"
    CLOSED = "closed"
    PRIVATE = "private"


Name = Annotated[str | None, typer.Argument(metavar="[NAME]", help="What it is called.")]
WhoEnters = Annotated[
    Policy,
    typer.Option(
        "--policy",
        help="Everyone, all history (anonymous) or from their entry on (public); "
        "whom you admit, all history (closed) or from their entry on (private).",
    ),
]
Cohosts = Annotated[
    list[str] | None,
    typer.Option("--cohost", metavar="PERSON", help="May speak while you are away; once for each, by rank."),
]
Keepers = Annotated[
    list[str] | None,
    typer.Option("--keeper", metavar="KEY@HOST:PORT", help="A relay that keeps what is said."),
]


def host(
    name: Name = None,
    policy: WhoEnters = Policy.PUBLIC,
    cohost: Cohosts = None,
    keeper: Keepers = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Found a place of which you are the host, and print the address by which others enter it."""
    from linnet.cli.running_node import control
    from linnet.identity.text import Sort, from_text
    from linnet.node.addresses import parse_contact
    from linnet.node.place_types import HostRequest
    from linnet.places import deed

    for person in cohost or ():
        from_text(Sort.PERSON, person)
    for contact in keeper or ():
        parse_contact(contact)
    with control(home) as node:
        reply = node.host_place(
            HostRequest(deed.Policy(policy), name, tuple(cohost or ()), tuple(keeper or ()))
        )
    if as_json:
        say_json(reply)
        return
    say(f"place   {reply.place.place}")
    say(f"address {reply.address}")
    say(f"next    linnet place announce {shlex.quote(name or reply.place.place)} hello")
