"""First pushes in any online periods, against every single push."""

from __future__ import annotations

from collections.abc import Iterable

from linnet.lab.relays.attendance import attend, by_presence
from linnet.lab.relays.chat_arrays import ChatIndex
from linnet.lab.relays.meetings import first_pushes_of_any
from linnet.lab.relays.presence import Presence
from linnet.lab.relays.receptions import Reception, direct_pushes
from linnet.lab.relays.returns import NOTHING


def first_of_periods(receptions: list[Reception], presence: Presence) -> list[int]:
    return [
        min(
            (one.time for one in receptions if one.receiver == member and start <= one.time < end),
            default=NOTHING,
        )
        for member, start, end in zip(*(column.tolist() for column in presence), strict=True)
    ]


def test_first_pushes_are_those_of_the_definition(
    around_sends: Iterable[tuple[ChatIndex, Presence, int]],
    at_any_time: Iterable[tuple[ChatIndex, Presence]],
) -> None:
    for index, presence in [*at_any_time, *((index, presence) for index, presence, _ in around_sends)]:
        pushed = first_of_periods(direct_pushes(index.chat, presence), presence)
        attendance = attend(index, presence)
        assert by_presence(attendance, first_pushes_of_any(attendance)).tolist() == pushed
