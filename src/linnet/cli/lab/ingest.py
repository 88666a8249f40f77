"""``linnet lab ingest``: files of the world into the lab's tables."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.lab.options import MasterOption, MemoryOption, OutOption, lab_extra, workshop
from linnet.cli.options import JsonOption, examples
from linnet.cli.output import say_json, say_table

if TYPE_CHECKING:
    from linnet.lab.sources.messages import MessageCounts

EPILOG = examples(
    "linnet lab ingest --format zulip messages.csv.gz --out chats",
)


class Format(StrEnum):
    """The formats of sources."""

    ZULIP = "zulip"


FilesArgument = Annotated[list[Path], typer.Argument(metavar="FILE…", help="Files or folders of the source.")]
FormatOption = Annotated[Format, typer.Option("--format", help="What wrote the files.")]
Salt = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Names are hashed with it; else one is kept in DIR.")
]
KeepText = Annotated[bool, typer.Option("--keep-text", help="Also keep what was said, as table texts.")]
KeepNames = Annotated[bool, typer.Option("--keep-names", help="Chats keep their names.")]
Excluded = Annotated[
    Path | None,
    typer.Option(
        "--exclude-users", "--bots", metavar="FILE", help="CSV with a column user: these are left out."
    ),
]


def ingest(
    files: FilesArgument,
    out: OutOption,
    format: FormatOption,
    salt: Salt = None,
    exclude_users: Excluded = None,
    keep_text: KeepText = False,
    keep_names: KeepNames = False,
    master: MasterOption = "local[*]",
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read files of the world into the lab's tables.

    People become salted hashes, and what they said its length. Rows that cannot be used go to
    DIR/quarantine with file, line and reason.
    """
    with lab_extra():
        from linnet.lab.sources.choices import Choices
        from linnet.lab.sources.excluded import read_users
        from linnet.lab.sources.messages import ingest_messages, prepare
        from linnet.lab.sources.names import kept_salt, names_of

        excluded = read_users(exclude_users) if exclude_users else frozenset()
        source = prepare(format.value, files, Choices(excluded=excluded, keep_text=keep_text))
        names = names_of(kept_salt(out) if salt is None else salt, keep_names)
        with workshop(out, master, memory, as_json) as place:
            counts = ingest_messages(place, source, names)
    if as_json:
        say_json(counts)
    else:
        _say(counts)


def _say(counts: MessageCounts) -> None:
    say_table(("of the source", "is "), _rows(counts))


def _rows(counts: MessageCounts) -> list[tuple[str, object]]:
    return [
        ("files", counts.files),
        ("messages", counts.messages),
        *((f"  {kind}", count) for kind, count in counts.kinds.items()),
        ("chats", counts.chats),
        ("users", counts.users),
        ("in quarantine", sum(counts.quarantined.values())),
        *((f"  {reason}", count) for reason, count in counts.quarantined.items()),
    ]
