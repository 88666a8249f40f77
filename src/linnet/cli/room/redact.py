"""``linnet room redact``: take an event back."""

from __future__ import annotations

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.room.options import EventArgument, ReasonOption, RoomArgument

EPILOG = examples("linnet room redact tea le1…", "linnet room redact tea le1abcdefgh --reason typo")


def redact(
    room: RoomArgument,
    event: EventArgument,
    reason: ReasonOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take an event back: your own, or with enough power another's.

    Nodes show it no more. Whoever has read it has read it.
    """
    from linnet.cli.room.finding import event_id, find_room
    from linnet.cli.room.outcome import tell_sent
    from linnet.cli.running_node import control

    with control(home) as node:
        found = find_room(node, room).room
        which = event_id(node, found, event)
        reply = node.redact(found, which, reason)
    tell_sent(reply, f"taken back: {which}", as_json)
