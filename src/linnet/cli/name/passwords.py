"""Where the password of a name comes from: a hidden prompt or a file, never an argument for all to see."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from linnet.cli.exits import ExitCode, Failure

PasswordOption: TypeAlias = Annotated[
    bool, typer.Option("--password", help="The label has a password; it is asked for, and not shown.")
]
PasswordFileOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--password-file", metavar="FILE", help="Its first line is the password; - reads standard input."
    ),
]

_STANDARD_INPUT = Path("-")
_MOST = 4096


def read_password(asked: bool, file: Path | None, twice: bool = False) -> str | None:
    """The password that was given, None if none was. What is new is typed twice."""
    if file is not None:
        return _first_line(file)
    if not asked:
        return None
    if not sys.stdin.isatty():
        raise Failure(
            "there is no terminal to ask for the password at: give it by --password-file FILE", ExitCode.USAGE
        )
    password = getpass.getpass("password: ")
    if twice and getpass.getpass("again: ") != password:
        raise Failure("these are two passwords; nothing was done", ExitCode.USAGE)
    return _checked(password)


def _first_line(file: Path) -> str:
    try:
        text = sys.stdin.read(_MOST) if file == _STANDARD_INPUT else file.read_text()[:_MOST]
    except (OSError, UnicodeDecodeError) as error:
        # Of what cannot be decoded the error would repeat some.
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise Failure(f"{file}: cannot be read: {why}", ExitCode.USAGE) from None
    return _checked(text.splitlines()[0] if text else "")


def _checked(password: str) -> str:
    if not password:
        raise Failure("the password is empty", ExitCode.USAGE)
    return password
