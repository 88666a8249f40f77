"""Who is online when something is sent, and where messages fall in periods."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

import numpy as np
import pytest

from linnet.lab.errors import LabError
from linnet.lab.relays.attendance import attend
from linnet.lab.relays.chat_arrays import FAR, ChatIndex, chat_arrays, index_chat
from linnet.lab.relays.presence import Presence

Row = tuple[int, int, int]


def as_rows(presence: Presence) -> list[Row]:
    return list(zip(*(column.tolist() for column in presence), strict=True))


def online_at(rows: list[Row], time: int) -> int:
    return sum(start <= time < end for _, start, end in rows)


def test_periods_know_their_place_in_the_chat(at_any_time: Iterable[tuple[ChatIndex, Presence]]) -> None:
    for index, presence in at_any_time:
        attendance, rows, times = attend(index, presence), as_rows(presence), index.chat.ts.tolist()
        for number, (member, start, end) in enumerate(rows):
            before = [row for row in rows[:number] if row[0] == member]
            prior = before[-1][2] if before else -1
            assert attendance.prior_end[number] == prior
            assert attendance.at_start[number] == bisect_left(times, start)
            assert attendance.at_end[number] == bisect_left(times, end)
            assert attendance.at_prior_end[number] == bisect_left(times, prior)
            assert attendance.company[number] == online_at(rows, start)
            assert attendance.next_start[number] == min((a for _, a, _ in rows if a > start), default=FAR)


def test_messages_know_who_is_there(at_any_time: Iterable[tuple[ChatIndex, Presence]]) -> None:
    for index, presence in at_any_time:
        attendance, rows = attend(index, presence), as_rows(presence)
        for event, (sender, time) in enumerate(
            zip(index.chat.user.tolist(), index.chat.ts.tolist(), strict=True)
        ):
            member, start, end = rows[int(attendance.period[event])]
            assert member == sender
            assert start <= time < end
            assert attendance.online[event] == online_at(rows, time)
            assert attendance.started[event] == sum(a <= time for _, a, _ in rows)


@pytest.mark.parametrize("periods", [[(0, 0, 5)], [(0, 0, 5), (1, 3, 4)], [(0, 0, 5), (1, 5, 9)]])
def test_nobody_sends_while_offline(periods: list[Row]) -> None:
    index = index_chat(chat_arrays([0, 4], ["a", "b"], [1, 1]))
    member, start, end = zip(*periods, strict=True)
    presence = Presence(np.array(member, np.int32), np.array(start), np.array(end))
    with pytest.raises(LabError, match="offline"):
        attend(index, presence)
