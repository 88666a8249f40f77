"""``linnet room unban``: take a ban back."""

from __future__ import annotations

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.room.options import PersonArgument, ReasonOption, RoomArgument

EPILOG = examples("linnet room unban tea bea", "linnet room unban tea lp1…")


def unban(
    room: RoomArgument,
    person: PersonArgument,
    reason: ReasonOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take a ban back: the person may be invited again."""
    from linnet.cli.room.finding import find_person, find_room
    from linnet.cli.room.outcome import tell_sent
    from linnet.cli.running_node import control
    from linnet.rooms.content import Membership

    with control(home) as node:
        found = find_room(node, room).room
        whom = find_person(node, found, person)
        reply = node.set_membership(found, whom, Membership.LEAVE, reason)
    tell_sent(reply, f"unbanned {whom}", as_json)
