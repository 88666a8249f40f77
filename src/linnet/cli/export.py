"""``linnet export``: a node in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json
from linnet.cli.passphrases import PassphraseOption, read_passphrase

EPILOG = examples(
    "linnet export backup.linnet --passphrase-file ~/secret",
    "linnet export person.linnet --without-log",
)

Target = Annotated[Path, typer.Argument(metavar="FILE", help="The file to write; never overwritten.")]
WithoutLog = Annotated[
    bool, typer.Option("--without-log", help="Only person and configuration, for one more device.")
]


def export(
    file: Target,
    without_log: WithoutLog = False,
    passphrase_file: PassphraseOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write this node into one private file: identity, configuration and event log.

    The node must not run. With the log the device itself moves: do not start the old home again.
    Without a passphrase whoever reads the file is you.
    """
    from linnet.node.archive import export_home

    passphrase = read_passphrase(passphrase_file)
    export_home(home, file, passphrase, with_log=not without_log)
    if as_json:
        say_json({"file": str(file), "bytes": file.stat().st_size, "sealed": passphrase is not None})
    else:
        sealed = "sealed by its passphrase" if passphrase else "NOT sealed: keep it as you would keep a key"
        say(f"wrote {file}, {file.stat().st_size:,} bytes, {sealed}")
