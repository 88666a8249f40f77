"""``linnet room ban``: put a person out for good."""

from __future__ import annotations

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.room.options import PersonArgument, ReasonOption, RoomArgument

EPILOG = examples("linnet room ban tea bea", "linnet room ban tea lp1… --reason spam")


def ban(
    room: RoomArgument,
    person: PersonArgument,
    reason: ReasonOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put a person out of a room for good, or keep them from ever joining."""
    from linnet.cli.room.membership import change
    from linnet.rooms.content import Membership

    change(room, person, Membership.BAN, "banned", reason, home, as_json)
