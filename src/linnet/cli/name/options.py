"""Options that the commands about names share."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

LabelArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="LABEL", help="A label of your zone, such as music; + is where you are contacted."
    ),
]
AddressArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="ADDRESS", help="Such as music.alice, music.alice.bob, lp1… or music.lp1…; .gnu may follow."
    ),
]
