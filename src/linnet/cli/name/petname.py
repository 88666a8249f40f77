"""``linnet name petname``: by which names you know people. They stay on this device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json, say_table

if TYPE_CHECKING:
    from linnet.node.name_types import PetnamesReply

SET_EPILOG = examples("linnet name petname set alice lp1…")
LIST_EPILOG = examples("linnet name petname list", "linnet name petname list --json | jq '.petnames[].name'")
REMOVE_EPILOG = examples("linnet name petname remove alice")

_COLUMNS = ("name", "person")

Name = Annotated[str, typer.Argument(metavar="NAME", help="What you call them.")]
Person = Annotated[
    str, typer.Argument(metavar="PERSON", help="Their person id, lp1…; linnet status shows it.")
]


def set_(name: Name, person: Person, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Know a person by this name: addresses may end with it. Make sure that the id is theirs."""
    from linnet.cli.running_node import control
    from linnet.identity.text import Sort, from_text, to_text

    whom = to_text(Sort.PERSON, from_text(Sort.PERSON, person))
    with control(home) as node:
        reply = node.set_petname(name, whom)
    if as_json:
        say_json(reply)
    else:
        say(f"you call {whom} {_called(reply, whom)}")


def list_(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List the people whom you know by a name."""
    from linnet.cli.running_node import control

    with control(home) as node:
        reply = node.petnames()
    if as_json:
        say_json(reply)
    elif reply.petnames:
        say_table(_COLUMNS, [(each.name, each.person) for each in reply.petnames])
    else:
        say("you know nobody by a name; linnet name petname set NAME PERSON changes that")


def remove(name: Name, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Know nobody by this name any more."""
    from linnet.cli.running_node import control

    with control(home) as node:
        reply = node.remove_petname(name)
    if as_json:
        say_json(reply)
    else:
        say(f"you call nobody {name} any more")


def _called(reply: PetnamesReply, person: str) -> str:
    return " or ".join(each.name for each in reply.petnames if each.person == person)
