"""The attendance of margins, without sorting, against that of any presence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from linnet.lab.relays.around_sends import attend_around
from linnet.lab.relays.attendance import Attendance, attend
from linnet.lab.relays.chat_arrays import ChatIndex
from linnet.lab.relays.presence import Presence


def columns(attendance: Attendance) -> Iterator[list[int]]:
    for part in (attendance.periods, attendance[3:]):
        for column in part:
            assert isinstance(column, np.ndarray)
            yield column.tolist()


def test_both_are_the_same(around_sends: Iterable[tuple[ChatIndex, Presence, int]]) -> None:
    for index, presence, margin in around_sends:
        quick, any_presence = attend_around(index, presence, margin), attend(index, presence)
        assert sorted(quick.periods.order.tolist()) == list(range(len(presence.start)))
        # Periods that begin together, at time 0, may stand in another order.
        assert sorted(zip(*(column.tolist() for column in quick.periods), strict=True)) == sorted(
            zip(*(column.tolist() for column in any_presence.periods), strict=True)
        )
        assert list(columns(quick))[9:] == list(columns(any_presence))[9:]
