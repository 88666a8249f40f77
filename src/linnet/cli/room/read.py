"""``linnet room read``: print what is said in a room."""

from __future__ import annotations

from typing import Annotated

import typer

from linnet.cli.moments import parse_since, wall_clock
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.room.options import FromOption, RoomArgument, StateOption

EPILOG = examples(
    "linnet room read tea",
    "linnet room read tea --from beginning --count 10",
    "linnet room read tea --name archiver --no-state >> tea.txt",
    "linnet room read tea --from 15m --json | jq -r .text",
)

Count = Annotated[int | None, typer.Option("--count", metavar="N", min=1, help="End after N events.")]
Name = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="Durable: go on after the last event that was printed."),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout", metavar="SECONDS", min=0.001, help="End after so long; 1 if --count is not reached."
    ),
]


def read(
    room: RoomArgument,
    since: FromOption = "now",
    count: Count = None,
    name: Name = None,
    state: StateOption = True,
    timeout: Timeout = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print what is said and done in a room, an event per line, until Ctrl-C or as many as asked for.

    Your own events are among them. A deadline that has passed is told on standard error.
    """
    from linnet.cli.printing import Printer
    from linnet.cli.room.finding import find_room
    from linnet.cli.room.names import Names
    from linnet.cli.room.wording import event_line
    from linnet.cli.running_node import control

    begin = parse_since(since, wall_clock())
    with control(home) as node, control(home) as acknowledging:
        found = find_room(node, room).room
        names = Names(() if as_json else node.room_members(found).members)
        items = node.read_room(found, begin, name, state=state, manual=name is not None)
        consumer = None if name is None else acknowledging
        Printer(as_json, count, consumer, line=lambda event: event_line(event, names)).run(items, timeout)
