"""Where a passphrase comes from: a file or the environment, never an argument that others can see."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from linnet.cli.exits import ExitCode, Failure

VARIABLE = "LINNET_PASSPHRASE"

PassphraseOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--passphrase-file", metavar="FILE", help=f"Its first line seals the file; or set {VARIABLE}."
    ),
]


def read_passphrase(file: Path | None) -> str | None:
    """The passphrase that was given, None if none was."""
    if file is None:
        return os.environ.get(VARIABLE) or None
    try:
        lines = file.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{file}: cannot be read as text: {error}", ExitCode.USAGE) from error
    if not lines or not lines[0]:
        raise Failure(f"{file}: its first line is empty; put the passphrase there", ExitCode.USAGE)
    return lines[0]
