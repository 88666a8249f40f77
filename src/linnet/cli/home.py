"""The commands that make, export and import the home of a node."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.moments import wall_clock
from linnet.cli.options import Options, with_examples
from linnet.cli.output import fact_lines
from linnet.cli.running_node import Session

if TYPE_CHECKING:
    from linnet.node.config import NodeConfig
    from linnet.node.home import Opened

LabelOption = Annotated[str, typer.Option("--label", metavar="NAME", help="A name for this device.")]


@dataclass(frozen=True)
class HomeOptions(Options):
    """The first settings of a new home."""

    label: LabelOption = ""
    tracker: Annotated[
        list[str] | None,
        typer.Option("--tracker", metavar="KEY@HOST:PORT", help="A tracker of the network; once for each."),
    ] = None
    listen: Annotated[
        list[str] | None,
        typer.Option("--listen", metavar="HOST:PORT", help="Where to accept links; once for each."),
    ] = None

    def config(self) -> NodeConfig:
        """Return the first configuration; raises `ConfigError` if it is wrong."""
        from msgspec.structs import replace

        from linnet.node.config import NodeConfig, NodeSection
        from linnet.node.config_problems import check

        section = NodeSection(label=self.label, trackers=tuple(self.tracker or ()))
        if self.listen:
            section = replace(section, listen=tuple(self.listen), listen_wide=True)
        config = NodeConfig(node=section)
        check(config)
        return config


@with_examples(
    'linnet init --label "kitchen pi"',
    "linnet init --tracker ld1…@192.0.2.7:7700 --tracker ld1…@192.0.2.8:7700",
    "linnet init --home /tmp/second",
)
def make_home(options: HomeOptions, session: Session) -> None:
    """Make a home: a person's key, this device's key and card, and a configuration with comments.

    Nothing is overwritten. Every node of a network needs the same trackers: give here the address that each
    tracker prints when it starts.
    """
    from linnet.node import home as homes

    path = homes.home_path(session.home)
    say_home(homes.init(path, wall_clock(), options.config()), session)


def say_home(opened: Opened, session: Session, is_new: bool = True) -> None:
    """Print whose home it is and, for a new one, the next steps."""
    from linnet.identity.text import Sort, to_text

    found = {
        "home": str(opened.home.path),
        "person": to_text(Sort.PERSON, opened.identity.author),
        "device": to_text(Sort.DEVICE, opened.identity.peer),
    }
    after = "" if session.home is None else f" --home {session.home}"
    session.say(found, [*fact_lines(found.items(), 8), *([f"next    linnet up{after}"] if is_new else [])])


PASSPHRASE_VARIABLE = "LINNET_PASSPHRASE"  # noqa: S105 - the name of a variable
PassphraseOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--passphrase-file",
        metavar="FILE",
        help=f"Its first line seals the file; or set {PASSPHRASE_VARIABLE}.",
    ),
]


def read_passphrase(file: Path | None) -> str | None:
    """Return the given passphrase; None if none was given."""
    if file is None:
        return os.environ.get(PASSPHRASE_VARIABLE) or None
    try:
        lines = file.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{file}: cannot be read as text: {error}", ExitCode.USAGE) from error
    if not lines or not lines[0]:
        raise Failure(f"{file}: its first line is empty; put the passphrase there", ExitCode.USAGE)
    return lines[0]


Target = Annotated[Path, typer.Argument(metavar="FILE", help="The file to write; never overwritten.")]
WithoutLog = Annotated[
    bool, typer.Option("--without-log", help="Only person and configuration, for one more device.")
]


@with_examples(
    "linnet export backup.linnet --passphrase-file ~/secret",
    "linnet export person.linnet --without-log",
)
def export_node(
    file: Target,
    without_log: WithoutLog = False,
    passphrase_file: PassphraseOption = None,
    *,
    session: Session,
) -> None:
    """Write this node into one private file: identity, configuration and event log.

    The node must not be running. With the log the device itself moves: do not start the old home again.
    Without a passphrase, anyone who can read the file can act as you.
    """
    from linnet.node.archive import export_home

    passphrase = read_passphrase(passphrase_file)
    export_home(session.home, file, passphrase, with_log=not without_log)
    size, is_sealed = file.stat().st_size, passphrase is not None
    sealed = "sealed by its passphrase" if is_sealed else "NOT sealed: keep it as you would keep a key"
    written = {"file": str(file), "bytes": size, "sealed": is_sealed}
    session.say(written, f"wrote {file}, {size:,} bytes, {sealed}")


Source = Annotated[Path, typer.Argument(metavar="FILE", help="What linnet export wrote.")]


@with_examples(
    "linnet import backup.linnet --passphrase-file ~/secret",
    "linnet import person.linnet --home ~/.linnet-laptop",
)
def import_node(file: Source, passphrase_file: PassphraseOption = None, *, session: Session) -> None:
    """Make a home from a file that linnet export wrote. Nothing is overwritten."""
    from linnet.node.archive import import_home

    opened = import_home(file, session.home, wall_clock(), read_passphrase(passphrase_file))
    say_home(opened, session, is_new=False)
