"""``linnet id backup``: the person's key as words for paper."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json, warn

EPILOG = examples("linnet id backup", "linnet id backup --yes | lpr", "linnet id backup --yes --json")

Yes = Annotated[bool, typer.Option("--yes", help="Print it though this is no terminal.")]
_COLUMNS = 4


def backup(yes: Yes = False, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Print the person's key as 24 words, to be written on paper and kept where nobody finds it.

    With them linnet id recover makes a new device of the same person, whatever became of this machine.
    """
    from linnet.cli.identity.person import person_key
    from linnet.identity.phrase import to_phrase
    from linnet.identity.text import Sort, to_text

    if not yes and not sys.stdout.isatty():
        raise Failure(
            "whoever reads these words is you, and this is no terminal; say --yes if they shall go there",
            ExitCode.USAGE,
        )
    key = person_key(home)
    person, phrase = to_text(Sort.PERSON, key.public), to_phrase(key.seed)
    warn("Whoever reads these words is you, for good. Write them on paper; keep no picture and no file.")
    warn(f"Write down also whose they are: {person}")
    if as_json:
        say_json({"person": person, "phrase": phrase})
    else:
        say(numbered(phrase.split()))


def numbered(words: list[str]) -> str:
    """Words in columns with their numbers, to be read from left to right."""
    cells = [f"{place:2} {word:10}" for place, word in enumerate(words, 1)]
    rows = (cells[at : at + _COLUMNS] for at in range(0, len(cells), _COLUMNS))
    return "\n".join("".join(row).rstrip() for row in rows)
