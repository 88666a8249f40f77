"""``linnet declare``: what the owner decides about a stream."""

from __future__ import annotations

from typing import Annotated

import typer

from linnet.cli.options import HomeOption, JsonOption, StreamArgument, examples
from linnet.cli.output import say, say_json

EPILOG = examples(
    "linnet declare me/news --only-me",
    "linnet declare me/news --publisher lp1… --publisher lp1…",
    "linnet declare me/ticker --degree 6 --near",
    "linnet declare me/diary --sealed",
)

Publishers = Annotated[
    list[str] | None,
    typer.Option(
        "--publisher", metavar="PERSON", help="May publish beside you; once for each. None: everyone."
    ),
]
OnlyMe = Annotated[bool, typer.Option("--only-me", help="Nobody but you may publish.")]
Sealed = Annotated[
    bool, typer.Option("--sealed", help="Only whom you let in can read it; for good. Implies --only-me.")
]
Degree = Annotated[int | None, typer.Option("--degree", min=2, max=64, help="Neighbours of a node.")]
Near = Annotated[bool, typer.Option("--near", help="Half of the neighbours are near ones.")]
Trackers = Annotated[
    list[str] | None,
    typer.Option("--tracker", metavar="KEY@HOST:PORT", help="The stream's own tracker, then its standbys."),
]


def declare(
    stream: StreamArgument,
    publisher: Publishers = None,
    only_me: OnlyMe = False,
    sealed: Sealed = False,
    degree: Degree = None,
    near: Near = False,
    tracker: Trackers = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Decide about a stream of your own, me/NAME: who may publish, how it is linked.

    Signed by you and enforced by every node. Each declaration replaces the one before. What is sealed stays
    so: only this device publishes in it then, and linnet stream allow lets readers in.
    """
    from linnet.cli.running_node import control, stream_name
    from linnet.identity.text import Sort, from_text
    from linnet.node.addresses import parse_contact
    from linnet.node.control_types import DeclareRequest

    name = stream_name(stream, home)
    for person in publisher or ():
        from_text(Sort.PERSON, person)
    for contact in tracker or ():
        parse_contact(contact)
    allowed = tuple(publisher or ()) if publisher or only_me or sealed else None
    with control(home) as node:
        reply = node.declare(DeclareRequest(name, allowed, degree, near, tuple(tracker or ()), sealed))
    if as_json:
        say_json(reply)
        return
    who = "everyone may publish" if allowed is None else f"you and {len(allowed)} others may publish"
    if sealed:
        who = "sealed; only this device publishes, and whom you let in reads: linnet stream allow"
    say(f"declared {name}: {who}")
