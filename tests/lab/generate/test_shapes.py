"""Members meet the published marks, messages sum to what was asked for."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.lab.errors import LabError
from linnet.lab.generate.shapes import (
    MOST_MESSAGES,
    apportion,
    group_size,
    group_sizes,
    message_counts,
    weights,
)


@pytest.mark.parametrize("chats", [100, 1_000, 5_956])
def test_members_meet_the_published_marks(chats: int) -> None:
    sizes = group_sizes(chats)
    assert sum(size == 2 for size in sizes) / chats == pytest.approx(0.42, abs=0.01)
    assert sum(size <= 30 for size in sizes) / chats == pytest.approx(0.83, abs=0.01)
    assert max(sizes) == 252


def test_members_of_all_are_as_many_as_published() -> None:
    assert 117_000 < sum(group_sizes(5_956)) < 119_000


def test_every_size_up_to_thirty_occurs() -> None:
    assert set(range(2, 31)) <= set(group_sizes(5_956))
    assert [group_size(q) for q in (0, 0.4199, 0.42, 0.8299, 0.83, 1)] == [2, 2, 3, 30, 31, 252]


def test_one_chat_has_two_members() -> None:
    assert group_sizes(1) == [2]


def test_the_largest_chat_is_ten_thousand_times_the_smallest() -> None:
    counts = weights(5_956)
    assert counts == sorted(counts)
    assert counts[-1] > 10_000 * counts[0]


SHARES = st.lists(st.tuples(st.integers(1, 1000), st.integers(0, 50)), min_size=1, max_size=12)


@given(SHARES, st.floats(0, 1))
def test_apportioned_is_whole_and_fits(shares: list[tuple[int, int]], part: float) -> None:
    by = [weight for weight, _ in shares]
    rooms = [room for _, room in shares]
    total = round(part * sum(rooms))
    given_ = apportion(total, by, rooms)
    assert sum(given_) == total
    assert all(0 <= each <= room for each, room in zip(given_, rooms, strict=True))
    # Those that are not full have their share of what the full ones left, but for rounding.
    rest = [n for n in range(len(by)) if given_[n] < rooms[n]]
    left = sum(given_[n] for n in rest)
    whole = sum(by[n] for n in rest)
    for n in rest:
        assert abs(given_[n] - Fraction(left * by[n], whole)) < len(by)


def test_apportioned_without_limits_is_by_largest_remainder() -> None:
    assert apportion(10, [1, 1, 1], [99] * 3) == [4, 3, 3]
    assert apportion(7, [1, 2, 4], [99] * 3) == [1, 2, 4]
    assert apportion(7, [1, 2, 4], [99, 99, 1]) == [2, 4, 1]


def test_everybody_has_a_message() -> None:
    members = [2, 5, 200]
    assert message_counts(207, members, [1, 1, 1]) == members
    assert sum(message_counts(1_000, members, [1, 5, 1])) == 1_000


def test_what_cannot_be_is_told() -> None:
    with pytest.raises(LabError, match="2 chats have 7 members, who write at least once: --messages 7"):
        message_counts(6, [2, 5], [1, 1])
    with pytest.raises(LabError, match="at most 2,000,000 messages"):
        message_counts(2 * MOST_MESSAGES + 1, [2, 5], [1, 1])
    assert message_counts(2 * MOST_MESSAGES, [2, 5], [1, 1]) == [MOST_MESSAGES] * 2
