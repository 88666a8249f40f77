"""``linnet content advertise``: serve those who want events of a predicate."""

from __future__ import annotations

from typing import Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import plain, say, say_json

EPILOG = examples(
    "linnet content advertise 'stock/price[0,1000]'",
    "linnet content advertise 'stock/price[0,1000]' --unlisted",
    "linnet content advertise 'stock/price[0,1000]' --close",
)

PredicateArgument = Annotated[
    str, typer.Argument(metavar="PREDICATE", help="What the group carries: every event in it is of this.")
]
Unlisted = Annotated[
    bool, typer.Option("--unlisted", help="Not on any board: for those who know your address and this.")
]
Close = Annotated[bool, typer.Option("--close", help="Serve it no longer, and tell its members.")]


def advertise(
    predicate: PredicateArgument,
    unlisted: Unlisted = False,
    close: Close = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Open a group of your own, which others find by what it carries and which your node serves.

    Say things in it with linnet content publish --via fast. It is there again when the node is.
    """
    from linnet.cli.running_node import control
    from linnet.content.predicate import MOST_ATTRIBUTES, read_predicate

    canonical = read_predicate(predicate, MOST_ATTRIBUTES).text
    if close and unlisted:
        raise Failure("--close needs no --unlisted", ExitCode.USAGE)
    with control(home) as node:
        if close:
            node.close_content_group(predicate)
            told: object = {"closed": canonical}
            words = f"closed {canonical}"
        else:
            opened = node.open_content_group(predicate, not unlisted)
            told = opened
            words = f"{opened.group} carries {plain(opened.predicate)}"
            words += "" if opened.listed else "; it is on no board: hand over your address and the predicate"
    if as_json:
        say_json(told)
    else:
        say(words)
