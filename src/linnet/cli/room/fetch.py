"""``linnet room fetch``: get a file out of a room."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json, size_text
from linnet.cli.room.options import EventArgument, PatienceOption, RoomArgument

if TYPE_CHECKING:
    from linnet.node.client import ControlClient
    from linnet.rooms.attachments import Attachment

EPILOG = examples("linnet room fetch tea le1…", "linnet room fetch tea le1abcdefgh --to ~/Downloads")

To = Annotated[Path, typer.Option("--to", metavar="DIR", help="Where to put it.", show_default="here")]
As = Annotated[str | None, typer.Option("--as", metavar="NAME", help="What to call it.")]


def fetch(
    room: RoomArgument,
    event: EventArgument,
    to: To = Path("."),
    name: As = None,
    patience: PatienceOption = 20.0,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Get the file of an attachment, from this node, members or relays, each piece checked.

    Nothing is overwritten, and a file has its name only when it is whole.
    """
    from linnet.cli.room.finding import find_event, find_room
    from linnet.cli.running_node import control
    from linnet.rooms.attachments import attachment_of
    from linnet.rooms.content import ATTACHMENT

    if name is not None and Path(name).name != name:
        raise Failure(f"{name!r} is no name of a file; --to says where to put it", ExitCode.USAGE)
    with control(home) as node:
        found = find_room(node, room).room
        shared = find_event(node, found, event)
        if shared.kind != ATTACHMENT:
            raise Failure(f"{shared.id} is no attachment but a {shared.kind}", ExitCode.USAGE)
        attachment = attachment_of(shared.body)
        path = _fetch(node, found, attachment, to, name, patience, as_json)
    if as_json:
        say_json({"path": str(path), "size": attachment.size, "media": attachment.media})
    else:
        say(f"fetched {path} ({size_text(attachment.size)})")


def _fetch(
    node: ControlClient,
    room: str,
    attachment: Attachment,
    to: Path,
    name: str | None,
    patience: float,
    quiet: bool,
) -> Path:
    from linnet.cli.room.progress import file_bar
    from linnet.node.attachment_files import IncomingFile

    with IncomingFile(attachment, to, name) as file, file_bar(file.path.name, quiet) as progress:
        while (digest := file.wanted) is not None:
            file.give(digest, node.fetch_chunk(room, digest.hex(), patience))
            progress(file.done, attachment.size)
        return file.finish()
