"""Who is online when something is sent, and where messages fall in periods."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

import numpy as np
import pytest

from linnet.lab.errors import LabError
from linnet.lab.relays.attendance import attend, by_presence
from linnet.lab.relays.chat_arrays import ChatIndex, chat_arrays, index_chat
from linnet.lab.relays.presence import Presence

Row = tuple[int, int, int]


def as_rows(presence: Presence) -> list[Row]:
    return list(zip(*(column.tolist() for column in presence), strict=True))


def online_at(rows: list[Row], time: int) -> int:
    return sum(start <= time < end for _, start, end in rows)


def test_periods_know_their_place_in_the_chat(at_any_time: Iterable[tuple[ChatIndex, Presence]]) -> None:
    for index, presence in at_any_time:
        attendance, rows, times = attend(index, presence), as_rows(presence), index.chat.ts.tolist()
        periods, starts = attendance.periods, sorted(start for _, start, _ in rows)
        assert periods.start.tolist() == starts
        assert by_presence(attendance, periods.order).tolist() == list(range(len(rows)))
        assert attendance.at_ends.tolist() == [
            bisect_left(times, end) for end in sorted(row[2] for row in rows)
        ]
        for at, number in enumerate(periods.order.tolist()):
            member, start, end = rows[number]
            before = [row for row in rows[:number] if row[0] == member]
            prior = before[-1][2] if before else -1
            assert (periods.member[at], periods.start[at], periods.end[at]) == (member, start, end)
            assert periods.prior_end[at] == prior
            assert periods.at_start[at] == bisect_left(times, start)
            assert periods.at_prior_end[at] == bisect_left(times, prior)
            assert periods.company[at] == online_at(rows, start)
            assert periods.begun[at] == bisect_right(starts, start)


def test_messages_know_who_is_there(at_any_time: Iterable[tuple[ChatIndex, Presence]]) -> None:
    for index, presence in at_any_time:
        attendance, rows = attend(index, presence), as_rows(presence)
        alone = set(attendance.alone.tolist())
        for event, (sender, time) in enumerate(
            zip(index.chat.user.tolist(), index.chat.ts.tolist(), strict=True)
        ):
            member, start, end = rows[int(attendance.turn[index.rank[event]])]
            assert member == sender
            assert start <= time < end
            assert attendance.online_until[event] == end
            assert (event in alone) == (online_at(rows, time) == 1)
            assert attendance.started[event] == sum(a <= time for _, a, _ in rows)


@pytest.mark.parametrize("periods", [[(0, 0, 5)], [(0, 0, 5), (1, 3, 4)], [(0, 0, 5), (1, 5, 9)]])
def test_nobody_sends_while_offline(periods: list[Row]) -> None:
    index = index_chat(chat_arrays([0, 4], ["a", "b"], [1, 1]))
    member, start, end = zip(*periods, strict=True)
    presence = Presence(np.array(member, np.int32), np.array(start), np.array(end))
    with pytest.raises(LabError, match="offline"):
        attend(index, presence)
