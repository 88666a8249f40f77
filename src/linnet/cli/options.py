"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from linnet.cli.exits import EXIT_CODES

HomeOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--home", envvar="LINNET_HOME", metavar="DIR", help="The node's home.", show_default="~/.linnet"
    ),
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
StreamArgument: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="STREAM", help="Name of the stream; me/NAME is your own stream NAME."),
]


def examples(*lines: str) -> str:
    """The end of a command's help: examples as they are typed, and how it exits."""
    # The mark keeps the lines of a paragraph apart.
    shown = "\n".join(f"  {line}" for line in lines)
    return f"\b\nExamples:\n{shown}\n\n{EXIT_CODES}"
