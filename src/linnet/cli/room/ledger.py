"""``linnet room ledger``: did it arrive, and at whom?"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json, say_table
from linnet.cli.room.options import RoomArgument

if TYPE_CHECKING:
    from linnet.cli.room.names import Names
    from linnet.node.room_types import LedgerReply

EPILOG = examples(
    "linnet room ledger tea",
    "linnet room ledger tea le1…",
    "linnet room ledger tea --watch",
    "linnet room ledger tea --limit 100 --json | jq '.events[].members[] | select(.fate != \"delivered\")'",
)

Event = Annotated[
    str | None, typer.Argument(metavar="[EVENT]", help="One event of yours: its id, or a beginning of it.")
]
Limit = Annotated[int, typer.Option("--limit", metavar="N", min=1, max=1000, help="So many of the newest.")]
Watch = Annotated[
    bool, typer.Option("--watch", help="Print it again whenever it changes, until all has arrived or Ctrl-C.")
]
_CLEAR = "\x1b[2J\x1b[H"
PERIOD = 1.0
"""Seconds between looks while it is watched."""


def ledger(
    room: RoomArgument,
    event: Event = None,
    limit: Limit = 20,
    watch: Watch = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show at whom your events have arrived: a table of members by what became of the events there.

    With an EVENT, what became of that one, member by member. Nothing is guessed: what has arrived is
    known because the member's device has said so.
    """
    from linnet.cli.room.finding import event_id, find_room
    from linnet.cli.room.names import Names
    from linnet.cli.running_node import control

    with control(home) as node:
        found = find_room(node, room).room
        wanted = None if event is None else event_id(node, found, event)
        names = Names(() if as_json else node.room_members(found).members)

        def show(reply: LedgerReply) -> None:
            if as_json:
                say_json(reply)
            else:
                show_ledger(reply, names, wanted is not None)

        if watch:
            watched(lambda: node.room_ledger(found, wanted, limit), show)
        else:
            show(node.room_ledger(found, wanted, limit))


def watched(
    look: Callable[[], LedgerReply], show: Callable[[LedgerReply], None], period: float = PERIOD
) -> None:
    """Show what changes, until nothing more can be learned."""
    from linnet.cli.room.ticks import is_settled

    pause = threading.Event()
    last = None
    while True:
        reply = look()
        if reply != last:
            if last is not None and sys.stdout.isatty():
                sys.stdout.write(_CLEAR)
            show(reply)
            last = reply
        if all(is_settled(each.members) for each in reply.events):
            return
        pause.wait(period)


def show_ledger(reply: LedgerReply, names: Names, is_one: bool) -> None:
    """The ledger for people."""
    from linnet.cli.room import ticks

    if not reply.events:
        say("you have said nothing here yet")
        return
    if is_one:
        say_table(ticks.FATE_COLUMNS, ticks.fate_rows(reply.events[0], names))
        say(ticks.summary(reply.events[0].members, names))
        return
    say_table(ticks.COUNT_COLUMNS, ticks.count_rows(reply.events, names))
    say("")
    say_table(ticks.EVENT_COLUMNS, ticks.event_rows(reply.events, names))
    say("")
    say(ticks.KEY)
