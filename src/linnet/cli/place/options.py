"""Options that the commands about places share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeAlias

import typer

from linnet.cli.exits import ExitCode, Failure

PlaceArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="PLACE", help="The place's name, its id lt1…, or a beginning of it.")
]
PersonArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="PERSON", help="A person's id lp1…, or a beginning of it.")
]
VariableOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--var", metavar="_NAME=VALUE", help="A variable of this message only; once for each."),
]
PatienceOption: TypeAlias = Annotated[
    float,
    typer.Option("--patience", metavar="SECONDS", min=0.1, max=600, help="How long to wait for an answer."),
]


NUMBERS, LISTS = ("_amount", "_counter"), "_list"
"""Types of objects that can be added to and taken away from, by their first keyword."""


def changes(given: Sequence[str] | None) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Objects that are set, added to and taken from, as they are typed.

    ``_topic=tea``, ``_list_guests+=bea``, ``_amount_cups-=2``
    """
    plain = [each for each in given or () if each.partition("=")[0][-1:] not in ("+", "-")]
    found: dict[str, dict[str, str]] = {"+": {}, "-": {}}
    for each in given or ():
        name, _, value = each.partition("=")
        if name[-1:] in found:
            name, operator = name[:-1], name[-1:]
            found[operator][name] = _operand(name, value, each)
    return values(plain), found["+"], found["-"]


def _operand(name: str, value: str, typed: str) -> str:
    from linnet.places.channel.packet import covers

    if covers(LISTS, name):
        return value if value.startswith("|") else f"|{value}"
    if not any(covers(each, name) for each in NUMBERS):
        told = "is no list and no number: += and -= are for _list…, _amount… and _counter…"
        raise Failure(f"{typed[:80]!r} {told}", ExitCode.USAGE)
    if not value.removeprefix("-").isdecimal():
        raise Failure(f"{typed[:80]!r}: {value[:40]!r} is no whole number", ExitCode.USAGE)
    return value


def values(given: Sequence[str] | None) -> dict[str, str]:
    """Names and values as they are typed, ``_topic=tea``."""
    found: dict[str, str] = {}
    for each in given or ():
        name, sign, value = each.partition("=")
        if not sign or not name.startswith("_"):
            raise Failure(f"{each[:80]!r} is no _NAME=VALUE, such as _topic=tea", ExitCode.USAGE)
        found[name] = value
    return found
