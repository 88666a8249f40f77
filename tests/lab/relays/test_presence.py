"""Online periods around what members send."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from linnet.lab.errors import LabError
from linnet.lab.relays.chat_arrays import ChatIndex, chat_arrays, index_chat
from linnet.lab.relays.presence import Presence, merge_periods, periods_around


def as_rows(presence: Presence) -> list[tuple[int, int, int]]:
    return list(zip(*(column.tolist() for column in presence), strict=True))


def milliseconds(rows: Iterable[tuple[int, int, int]]) -> set[tuple[int, int]]:
    return {(member, time) for member, start, end in rows for time in range(start, end)}


def islands(online: set[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Periods again from single milliseconds."""
    starts = sorted(one for one in online if (one[0], one[1] - 1) not in online)
    ends = sorted((member, time + 1) for member, time in online if (member, time + 1) not in online)
    return [(member, start, end) for (member, start), (_, end) in zip(starts, ends, strict=True)]


def test_the_sample_of_the_thesis() -> None:
    """Times of its Table 11 with 21 s."""
    index = index_chat(chat_arrays([0, 19, 29, 114, 820], [1] * 5, [1] * 5))
    assert as_rows(periods_around(index, 21)) == [(0, 0, 50), (0, 93, 135), (0, 799, 841)]


def test_touching_periods_are_one() -> None:
    index = index_chat(chat_arrays([0, 100, 120, 141], [1, 2, 2, 2], [1] * 4))
    assert as_rows(periods_around(index, 10)) == [(0, 0, 10), (1, 90, 130), (1, 131, 151)]


def test_periods_are_the_milliseconds_near_a_message(
    around_sends: Iterable[tuple[ChatIndex, Presence, int]],
) -> None:
    for index, presence, margin in around_sends:
        sends = zip(index.user.tolist(), index.ts.tolist(), strict=True)
        near = ((member, max(0, time - margin), time + margin) for member, time in sends)
        assert as_rows(presence) == islands(milliseconds(near))


def test_any_periods_merge() -> None:
    luck = np.random.Generator(np.random.Philox(5))
    for _ in range(200):
        count = int(luck.integers(0, 12))
        member = luck.integers(0, 3, count).astype(np.int32)
        start = luck.integers(0, 60, count)
        end = start + luck.integers(0, 20, count)
        rows = list(zip(member.tolist(), start.tolist(), end.tolist(), strict=True))
        assert as_rows(merge_periods(member, start, end)) == islands(milliseconds(rows))


@pytest.mark.parametrize("margin", [0, -5])
def test_a_margin_must_be_positive(margin: int) -> None:
    with pytest.raises(LabError, match="positive"):
        periods_around(index_chat(chat_arrays([0], [1], [1])), margin)
