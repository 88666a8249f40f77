"""The person's key of a home, for the commands that sign with it or show it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from linnet.cli.exits import ExitCode, Failure

if TYPE_CHECKING:
    from linnet.identity.keys import SigningKey


def person_key(home: Path | None, phrase_file: Path | None = None) -> SigningKey:
    """The key from the home, or from a phrase for a home that does not hold it.

    Raises `HomeError`, `KeyFileError`, `BadText`, or `Failure` if it is the key of somebody else.
    """
    from linnet.cli.identity.phrases import read_phrase
    from linnet.identity.keys import SigningKey
    from linnet.identity.phrase import from_phrase
    from linnet.node.home import Home, HomeError, home_path
    from linnet.node.keyfiles import load_card, load_key

    at = Home(home_path(home))
    if not at.path.is_dir():
        raise HomeError(f"{at.path}: there is no home; make one with: linnet init, or linnet id recover")
    card = load_card(at.card)
    if phrase_file is not None:
        key = SigningKey(from_phrase(read_phrase(phrase_file)))
    elif at.person_key.exists():
        key = load_key(at.person_key, "person")
    else:
        raise Failure(
            f"{at.person_key}: the person's key is kept elsewhere; this needs it: do it on the device that "
            "has it, or bring the 24 words by --phrase-file where the command takes them",
            ExitCode.CONFIGURATION,
        )
    if key.public != card.person:
        raise Failure("this is the key of another person than the one of this home", ExitCode.CONFIGURATION)
    return key
