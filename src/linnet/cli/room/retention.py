"""``linnet room retention``: how long relays keep a room's events."""

from __future__ import annotations

from typing import Annotated

import typer

from linnet.cli.moments import duration_text, parse_duration
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json
from linnet.cli.room.options import RoomArgument

EPILOG = examples(
    "linnet room retention tea", "linnet room retention tea 7d", "linnet room retention tea forever"
)

FOREVER = "forever"
Time = Annotated[
    str | None, typer.Argument(metavar="[TIME]", help="2h, 7d, or forever; nothing shows what holds.")
]


def retention(
    room: RoomArgument, time: Time = None, home: HomeOption = None, as_json: JsonOption = False
) -> None:
    """Show or decide how long the room's relays keep an event. Members keep theirs as they like.

    An event that a member did not fetch in time shows as expired in the sender's ledger.
    """
    from linnet.cli.room.finding import find_room
    from linnet.cli.room.outcome import tell_sent
    from linnet.cli.running_node import control
    from linnet.rooms.content import RETENTION

    seconds = None if time in (None, FOREVER) else parse_duration(time or "")
    with control(home) as node:
        found = find_room(node, room).room
        if time is not None:
            tell_sent(node.set_retention(found, seconds), f"relays keep events {kept_text(seconds)}", as_json)
            return
        entries = [entry for entry in node.room_state(found).entries if entry.kind == RETENTION]
    kept = entries[0].content["max_lifetime_ms"] if entries and entries[0].content else None
    seconds = None if kept is None else kept / 1000
    if as_json:
        say_json({"room": found, "seconds": seconds, "decided": bool(entries)})
    elif entries:
        say(f"relays keep events {kept_text(seconds)}")
    else:
        say("nothing is decided: each relay keeps events as long as its own configuration says")


def kept_text(seconds: float | None) -> str:
    """How long, in words."""
    return "until they are full" if seconds is None else f"for {duration_text(seconds)}"
