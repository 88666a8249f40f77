"""Options that the commands about rooms share."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

RoomArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="ROOM", help="The room's name, its id lt1…, or a beginning of it.")
]
PersonArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="PERSON", help="A person's id lp1…, a beginning of it, or what their device is called."
    ),
]
EventArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="EVENT", help="The event's id le1…, or a beginning of it.")
]
ReasonOption: TypeAlias = Annotated[
    str | None, typer.Option("--reason", metavar="TEXT", help="Why; everyone in the room can read it.")
]
PatienceOption: TypeAlias = Annotated[
    float,
    typer.Option("--patience", metavar="SECONDS", min=0.1, max=600, help="How long to wait for an answer."),
]
FromOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--from", metavar="TIME", help="beginning, now, so long ago (15m, 2h, 7d), or 2026-11-15T09:30."
    ),
]
StateOption: TypeAlias = Annotated[
    bool, typer.Option("--state/--no-state", help="Whether to tell who came, went and changed what.")
]
