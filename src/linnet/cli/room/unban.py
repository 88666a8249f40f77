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
    from linnet.cli.room.membership import change
    from linnet.rooms.content import Membership

    change(room, person, Membership.LEAVE, "unbanned", reason, home, as_json)
