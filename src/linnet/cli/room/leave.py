"""``linnet room leave``: leave a room."""

from __future__ import annotations

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json
from linnet.cli.room.options import RoomArgument

EPILOG = examples("linnet room leave tea", "linnet room leave lt1…")


def leave(room: RoomArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Leave a room and stop following it. What is kept of it here stays."""
    from linnet.cli.room.finding import find_room
    from linnet.cli.running_node import control

    with control(home) as node:
        found = find_room(node, room)
        node.leave_room(found.room)
    if as_json:
        say_json({"room": found.room, "left": True})
    else:
        say(f"left    {found.room}")
