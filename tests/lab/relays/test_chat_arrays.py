"""Chats as arrays, and their two orders."""

from __future__ import annotations

import numpy as np
import pytest

from linnet.lab.errors import LabError
from linnet.lab.relays.chat_arrays import FAR, ChatArrays, chat_arrays, index_chat, next_other, padded


def test_a_chat_begins_at_zero_with_members_numbered_and_ties_in_order() -> None:
    chat = chat_arrays([1_500, 1_000, 1_500, 9_000], ["c", "a", "a", "z"], [1, 2, 3, 4])
    assert chat.ts.tolist() == [0, 500, 500, 8_000]
    assert chat.user.tolist() == [0, 1, 0, 2]
    assert chat.chars.tolist() == [2, 1, 3, 4]
    assert chat.members == 3
    assert [str(column.dtype) for column in chat[:3]] == ["int64", "int32", "int32"]


@pytest.mark.parametrize(("ts", "user", "chars"), [([], [], []), ([1], [1, 2], [1]), ([1, 2], [1, 2], [1])])
def test_what_is_no_chat_is_refused(ts: list[int], user: list[int], chars: list[int]) -> None:
    with pytest.raises(LabError):
        chat_arrays(ts, user, chars)


@pytest.mark.parametrize("members", [3, 100_000])
def test_orders_lead_to_each_other(members: int) -> None:
    luck = np.random.Generator(np.random.Philox(members))
    user = luck.integers(0, members, 500).astype(np.int32)
    chat = ChatArrays(np.sort(luck.integers(0, 900, 500)), user, np.ones(500, np.int32), members)
    index = index_chat(chat)
    expected = sorted(range(500), key=lambda place: (int(chat.user[place]), place))
    assert index.order.tolist() == expected
    assert index.order[index.rank].tolist() == list(range(500))
    assert index.ts.tolist() == [int(chat.ts[place]) for place in expected]
    for at, place in enumerate(expected):
        earlier = [int(chat.ts[other]) for other in range(place) if chat.user[other] == chat.user[place]]
        assert index.ts[at] == chat.ts[place]
        assert index.since[place] == (chat.ts[place] - earlier[-1] if earlier else FAR)
        later = [
            int(chat.ts[other]) for other in range(place + 1, 500) if chat.user[other] == chat.user[place]
        ]
        assert index.until[place] == (later[0] - chat.ts[place] if later else FAR)


def test_the_next_of_somebody_else() -> None:
    assert next_other(np.array([4, 4, 1, 4, 4], np.int32)).tolist() == [2, 2, 3, 5, 5, 5]
    assert next_other(np.array([7], np.int32)).tolist() == [1, 1]


def test_behind_the_last_time_is_one_that_never_comes() -> None:
    assert padded(np.array([3, 5])).tolist() == [3, 5, FAR]
