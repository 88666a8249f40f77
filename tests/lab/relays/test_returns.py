"""First receptions in online periods, with relays, against every single reception."""

from __future__ import annotations

from collections.abc import Iterable

from linnet.lab.relays.attendance import attend, by_presence
from linnet.lab.relays.chat_arrays import ChatIndex, chat_arrays, index_chat
from linnet.lab.relays.presence import Presence, periods_around
from linnet.lab.relays.receptions import Reception, relayed_receptions
from linnet.lab.relays.returns import NOTHING, first_relayed


def first_of_periods(receptions: list[Reception], presence: Presence) -> list[int]:
    return [
        min(
            (one.time for one in receptions if one.receiver == member and start <= one.time < end),
            default=NOTHING,
        )
        for member, start, end in zip(*(column.tolist() for column in presence), strict=True)
    ]


def test_first_receptions_are_those_of_the_definition(
    around_sends: Iterable[tuple[ChatIndex, Presence, int]],
    at_any_time: Iterable[tuple[ChatIndex, Presence]],
) -> None:
    for index, presence in [*at_any_time, *((index, presence) for index, presence, _ in around_sends)]:
        received = first_of_periods(relayed_receptions(index.chat, presence), presence)
        attendance = attend(index, presence)
        assert by_presence(attendance, first_relayed(attendance)).tolist() == received


def test_who_comes_twice_with_nobody_between_receives_nothing() -> None:
    index = index_chat(chat_arrays([0, 100, 200, 300], ["a", "b", "b", "a"], [1] * 4))
    attendance = attend(index, periods_around(index, 10))
    assert by_presence(attendance, first_relayed(attendance)).tolist() == [NOTHING, 290, 90, NOTHING]
