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


def values(given: Sequence[str] | None) -> dict[str, str]:
    """Names and values as they are typed, ``_topic=tea``."""
    found: dict[str, str] = {}
    for each in given or ():
        name, sign, value = each.partition("=")
        if not sign or not name.startswith("_"):
            raise Failure(f"{each[:80]!r} is no _NAME=VALUE, such as _topic=tea", ExitCode.USAGE)
        found[name] = value
    return found
