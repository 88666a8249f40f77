"""First pushes in online periods around sends, against every single push."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from linnet.lab.relays.attendance import attend, by_presence
from linnet.lab.relays.chat_arrays import ChatIndex, chat_arrays, index_chat
from linnet.lab.relays.meetings import first_pushes_of_any
from linnet.lab.relays.presence import Presence, periods_around
from linnet.lab.relays.pushes import first_pushes, pushed_or_waiting
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
) -> None:
    returners = 0
    for index, presence, margin in around_sends:
        attendance = attend(index, presence)
        pushed = by_presence(attendance, first_pushes(attendance, margin))
        assert pushed.tolist() == first_of_periods(direct_pushes(index.chat, presence), presence)
        assert (
            first_pushes(attendance, margin, patience=1).tolist() == first_pushes(attendance, margin).tolist()
        )
        simple = by_presence(attendance, pushed_or_waiting(attendance))
        returners += int((pushed != np.where(simple < presence.end, simple, NOTHING)).sum())
    assert returners > 20, "the third case is hardly ever seen"


@pytest.mark.parametrize("members", [2, 9, 60])
def test_both_ways_to_find_them_agree_on_larger_chats(members: int) -> None:
    luck = np.random.Generator(np.random.Philox(members))
    pauses = np.exp(luck.normal(6.0, 2.5, 4_000)).astype(np.int64)
    user = luck.integers(0, members, 4_000)
    index = index_chat(chat_arrays(np.cumsum(pauses), user, np.ones(4_000)))
    for margin in (30, 500, 4_000, 30_000, 200_000):
        attendance = attend(index, periods_around(index, margin))
        assert first_pushes(attendance, margin).tolist() == first_pushes_of_any(attendance).tolist()


def test_a_crowd_that_meets_daily_costs_no_look_at_each_pair() -> None:
    """Forty members, most of them every day within an hour, a few only now and then."""
    luck = np.random.Generator(np.random.Philox(8))
    there = luck.random((60, 40)) < np.where(np.arange(40) < 35, 0.9, 0.2)
    day, member = np.nonzero(there)
    times = day * 86_400_000 + luck.integers(0, 3_600_000, len(day))
    index = index_chat(chat_arrays(times, member, np.ones(len(day))))
    for margin in (60_000, 1_800_000, 3_600_000, 14_400_000):
        attendance = attend(index, periods_around(index, margin))
        assert first_pushes(attendance, margin).tolist() == first_pushes_of_any(attendance).tolist()


def test_who_comes_back_first_with_something_to_tell_is_heard() -> None:
    """A spoke while C was away, left, and comes back while C is online but before anybody speaks."""
    index = index_chat(chat_arrays([0, 100, 105], ["a", "c", "a"], [1] * 3))
    presence = periods_around(index, 10)
    assert presence.start.tolist() == [0, 95, 90]
    attendance = attend(index, presence)
    assert by_presence(attendance, first_pushes(attendance, 10)).tolist() == [NOTHING, 100, 95]
