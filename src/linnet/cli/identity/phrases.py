"""Where a recovery phrase comes from: a private file, standard input, or hidden typing; never an argument."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.output import counted, warn
from linnet.core.errors import BadText

PhraseOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--phrase-file", metavar="FILE", help="Where the 24 words stand; - reads standard input."),
]

_STANDARD_INPUT = Path("-")
_MOST = 4096


def read_phrase(file: Path | None) -> str:
    """The words as they were given; on a terminal they are asked for, and not shown."""
    if file is not None and file != _STANDARD_INPUT:
        return _text_of(file)
    if sys.stdin.isatty():
        return _asked()
    if file is None:
        raise Failure(
            "give the words by --phrase-file FILE, or - for standard input; an argument would be seen",
            ExitCode.USAGE,
        )
    text = sys.stdin.read(_MOST + 1)
    if len(text) > _MOST:
        raise Failure(f"standard input has more than {_MOST} characters; this is no phrase", ExitCode.USAGE)
    return text


def _text_of(file: Path) -> str:
    from linnet.node.keyfiles import read_private

    try:
        return read_private(file).decode()
    except UnicodeDecodeError:
        # Without its cause, which would repeat what the file holds.
        raise Failure(f"{file}: is no text", ExitCode.USAGE) from None


def _asked() -> str:
    from linnet.identity.phrase import WORDS
    from linnet.identity.words import read_words

    warn(f"Type the {WORDS} words, as many on a line as you like. They are not shown.")
    words: list[str] = []
    while len(words) < WORDS:
        try:
            line = getpass.getpass(f"word {len(words) + 1}: ")
        except EOFError:
            raise Failure(f"the phrase ended after {counted(len(words), 'word')}") from None
        try:
            words += read_words(line, len(words) + 1)
        except BadText as error:
            warn(f"{error}; type this line again")
    return " ".join(words)
