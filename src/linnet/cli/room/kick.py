"""``linnet room kick``: put a person out."""

from __future__ import annotations

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.room.options import PersonArgument, ReasonOption, RoomArgument

EPILOG = examples("linnet room kick tea bea", "linnet room kick tea lp1… --reason spam")


def kick(
    room: RoomArgument,
    person: PersonArgument,
    reason: ReasonOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put a person out of a room; who is invited again may come back."""
    from linnet.cli.room.membership import change
    from linnet.rooms.content import Membership

    change(room, person, Membership.LEAVE, "removed", reason, home, as_json)
