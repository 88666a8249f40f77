"""``linnet import``: a node out of one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linnet.cli.moments import wall_clock
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json
from linnet.cli.passphrases import PassphraseOption, read_passphrase

EPILOG = examples(
    "linnet import backup.linnet --passphrase-file ~/secret",
    "linnet import person.linnet --home ~/.linnet-laptop",
)

Source = Annotated[Path, typer.Argument(metavar="FILE", help="What linnet export wrote.")]


def import_(
    file: Source,
    passphrase_file: PassphraseOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a home from a file that linnet export wrote. Nothing is overwritten."""
    from linnet.identity.text import Sort, to_text
    from linnet.node.archive import import_home

    opened = import_home(file, home, wall_clock(), read_passphrase(passphrase_file))
    found = {
        "home": str(opened.home.path),
        "person": to_text(Sort.PERSON, opened.identity.author),
        "device": to_text(Sort.DEVICE, opened.identity.peer),
    }
    if as_json:
        say_json(found)
    else:
        for name, value in found.items():
            say(f"{name:8}{value}")
