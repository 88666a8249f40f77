"""``linnet room share``: show those who joined later what was said before."""

from __future__ import annotations

from typing import Annotated

import typer

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.room.options import RoomArgument

EPILOG = examples("linnet room share tea", "linnet room share tea --last 100")

Last = Annotated[
    int | None, typer.Option("--last", metavar="N", min=1, max=1_000_000, help="Only so many of the newest.")
]


def share(
    room: RoomArgument, last: Last = None, home: HomeOption = None, as_json: JsonOption = False
) -> None:
    """Show everyone who is in an encrypted room now what you could read before.

    Only in rooms that were founded with --history shared. It cannot be taken back.
    """
    from linnet.cli.room.finding import find_room
    from linnet.cli.room.outcome import tell_sent
    from linnet.cli.running_node import control

    with control(home) as node:
        reply = node.share_history(find_room(node, room).room, last)
    told = "what was said before is shown to the room" if reply.ids else "there is nothing to show yet"
    tell_sent(reply, told, as_json)
