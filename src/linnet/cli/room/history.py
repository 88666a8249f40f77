"""``linnet room history``: what is kept of a room."""

from __future__ import annotations

from typing import Annotated

import typer

from linnet.cli.moments import parse_since, wall_clock
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.room.options import FromOption, RoomArgument, StateOption

EPILOG = examples(
    "linnet room history tea",
    "linnet room history tea --from 2h --limit 100",
    "linnet room history tea --json > tea.jsonl",
)

Limit = Annotated[int | None, typer.Option("--limit", metavar="N", min=1, help="At most N events.")]


def history(
    room: RoomArgument,
    since: FromOption = "beginning",
    limit: Limit = None,
    state: StateOption = True,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print what this node keeps of a room, then end.

    The order is the same for everyone who keeps the same: what was said with knowledge of something else
    comes after it, and else the authors' times decide. What came here later than what follows it has a
    mark, ↥."""
    from linnet.cli.printing import Printer
    from linnet.cli.room.finding import find_room
    from linnet.cli.room.names import Names
    from linnet.cli.room.wording import event_line
    from linnet.cli.running_node import control

    moment = wall_clock()
    begin = parse_since(since, moment)
    with control(home) as node:
        found = find_room(node, room).room
        names = Names(() if as_json else node.room_members(found).members)
        items = node.read_room(found, moment if begin is None else begin, live=False, state=state)
        printer = Printer(as_json, limit, None, is_history=True, line=lambda event: event_line(event, names))
        printer.run(items, None)
