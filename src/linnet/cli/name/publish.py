"""``linnet name publish``: say under a label where a place is, or whose zone goes on from there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.moments import clock_text, parse_duration
from linnet.cli.name.options import LabelArgument
from linnet.cli.name.passwords import PasswordFileOption, PasswordOption, read_password
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import counted, say, say_json, warn

if TYPE_CHECKING:
    from linnet.node.client import ControlClient
    from linnet.node.name_types import NameReply

EPILOG = examples(
    "linnet name publish music --place lt1…",
    "linnet name publish + --place lt1… --at ld1…@192.0.2.7:7700",
    "linnet name publish alice --zone alice",
    "linnet name publish club --place lt1… --password --lasts 7d --once",
)

Place = Annotated[
    str | None,
    typer.Option(
        "--place",
        metavar="PLACE",
        help="The place: its id lt1…, or a beginning of it, or an address that leads to it already.",
    ),
]
At = Annotated[
    list[str] | None,
    typer.Option(
        "--at",
        metavar="KEY@HOST:PORT",
        help="A peer at which it is entered; once for each. Default: this node.",
    ),
]
Zone = Annotated[
    str | None,
    typer.Option("--zone", metavar="PERSON", help="Whose zone goes on from here: a petname, or lp1…."),
]
Lasts = Annotated[
    str | None,
    typer.Option(
        "--lasts", metavar="TIME", help="How long it is good: 2h, 7d.", show_default="as configured"
    ),
]
Once = Annotated[
    bool, typer.Option("--once", help="Let it end; otherwise it is renewed while the node runs.")
]


def publish(
    label: LabelArgument,
    place: Place = None,
    at: At = None,
    zone: Zone = None,
    lasts: Lasts = None,
    once: Once = False,
    password: PasswordOption = False,
    password_file: PasswordFileOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say under a label of your zone where a place is (--place), whose zone goes on (--zone), or both.

    Nodes that keep it can neither read the label nor what it leads to. With a password nobody can even look
    it up who does not know that.
    """
    from linnet.cli.exits import ExitCode, Failure
    from linnet.cli.running_node import control
    from linnet.node.name_types import PublishNameRequest

    if place is None and zone is None:
        raise Failure("say what it leads to: --place PLACE or --zone PERSON", ExitCode.USAGE)
    if at and place is None:
        raise Failure("--at needs --place: one enters places, not zones", ExitCode.USAGE)
    lifetime = None if lasts is None else parse_duration(lasts)
    secret = read_password(password, password_file, twice=True)
    with control(home) as node:
        where, contacts = (None, ()) if place is None else _place(node, place)
        whose = None if zone is None else _zone(node, zone)
        given = tuple(at) if at else contacts
        reply = node.publish_name(PublishNameRequest(label, where, given, whose, lifetime, not once, secret))
    tell(reply, as_json)


def tell(reply: NameReply, as_json: bool) -> None:
    """What was said, and to whom it was handed at once."""
    if as_json:
        say_json(reply)
        return
    if reply.removed:
        say(f"removed {reply.label}; who asks is told so until {clock_text(reply.expires)}")
    else:
        say(f"published {reply.label}, good until {clock_text(reply.expires)}")
    if reply.handed:
        say(f"handed to {counted(len(reply.handed), 'node')}; linnet name list shows who keeps it")
    else:
        warn("no node that keeps records has a link to yours: it is found at your own node alone for now")


BEGINNING_CHARS = 32
"""Characters of an id that are taken for the beginning of one, at most."""


def _place(node: ControlClient, text: str) -> tuple[str, tuple[str, ...]]:
    """The place that is meant, and where it is entered if an address says so."""
    from linnet.cli.exits import Failure
    from linnet.cli.name.wording import fault_text
    from linnet.cli.place.finding import find_place
    from linnet.core.errors import BadText
    from linnet.identity.text import Sort, from_text, to_text
    from linnet.node.name_types import ResolveNameRequest

    if text.strip().lower().startswith(Sort.TOPIC):
        try:
            return to_text(Sort.TOPIC, from_text(Sort.TOPIC, text)), ()
        except BadText:
            # The beginning of an id is short; a long one is meant to be whole, and is mistyped.
            if len(text.strip()) > BEGINNING_CHARS:
                raise
            return find_place(node, text), ()
    found = node.resolve_name(ResolveNameRequest(text))
    if found.place is None:
        raise Failure(fault_text(found))
    return found.place, found.contacts


def _zone(node: ControlClient, text: str) -> str:
    """The person that is meant: by a key, or by the name that the user gave."""
    from linnet.core.errors import BadText
    from linnet.identity.text import Sort, from_text, to_text
    from linnet.names.address import read_name

    if text.strip().lower().startswith(Sort.PERSON):
        return to_text(Sort.PERSON, from_text(Sort.PERSON, text))
    name = read_name(text)
    for known in node.petnames().petnames:
        if known.name == name:
            return known.person
    raise BadText(f"you know nobody by the name {name!r}; linnet name petname set {name} lp1… changes that")
