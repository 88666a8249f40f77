"""``linnet room attach``: put a file into a room."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json, size_text
from linnet.cli.room.options import RoomArgument

if TYPE_CHECKING:
    from linnet.node.client import ControlClient
    from linnet.node.control_types import RoomView
    from linnet.node.room_types import SentReply

EPILOG = examples("linnet room attach tea cake.jpg", "linnet room attach tea *.pdf")

Files = Annotated[list[Path], typer.Argument(metavar="FILE...", help="The files.")]


def attach(room: RoomArgument, files: Files, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Put files into a room. Their pieces are kept here and offered to the room's relays.

    In an encrypted room relays cannot read them.
    """
    from linnet.cli.room.finding import find_room
    from linnet.cli.room.outcome import went_to
    from linnet.cli.running_node import control

    with control(home) as node:
        found = find_room(node, room)
        for path in files:
            reply, size = _attach(node, found, path, as_json)
            if as_json:
                say_json(reply)
            else:
                say(f"event   {reply.ids[0]}")
                say(f"sent to {went_to(reply)}: {path.name} ({size_text(size)})")


def _attach(node: ControlClient, room: RoomView, path: Path, quiet: bool) -> tuple[SentReply, int]:
    from linnet.cli.room.progress import file_bar
    from linnet.node.attachment_files import OutgoingFile
    from linnet.rooms.attachments import Piece, attachment_body
    from linnet.rooms.content import ATTACHMENT

    with OutgoingFile(path, room.encrypted) as file, file_bar(path.name, quiet) as progress:
        done = 0
        while isinstance(step := file.step(), Piece):
            node.keep_chunk(room.room, step.data)
            done = min(file.size, done + len(step.data))
            progress(done, file.size)
        return node.send_to_room(room.room, [attachment_body(step)], ATTACHMENT), file.size
