"""Single receptions against a replay that goes through every millisecond."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from linnet.lab.relays.chat_arrays import ChatArrays, ChatIndex, chat_arrays, index_chat
from linnet.lab.relays.presence import Presence, periods_around
from linnet.lab.relays.receptions import (
    Reception,
    direct_pushes,
    periods_of,
    relayed_receptions,
    synchronised_receptions,
)


def online_at(presence: Presence, members: int, time: int) -> list[int]:
    periods = periods_of(presence, members)
    return [member for member in range(members) if any(a <= time < b for a, b in periods[member])]


def replay(chat: ChatArrays, presence: Presence) -> tuple[list[Reception], list[Reception], list[Reception]]:
    """By relays, by the senders, and by everybody to everybody, millisecond by millisecond."""
    relayed: dict[tuple[int, int], int] = {}
    pushed: dict[tuple[int, int], int] = {}
    told: dict[tuple[int, int], int] = {}
    known: list[set[int]] = [set() for _ in range(chat.members)]
    for time in range(int(presence.end.max()) + 1):
        online = online_at(presence, chat.members, time)
        for event in range(len(chat.ts)):
            if chat.ts[event] == time:
                known[int(chat.user[event])].add(event)
        everything = set().union(*(known[member] for member in online))
        for receiver in online:
            for event in range(len(chat.ts)):
                if chat.ts[event] <= time and chat.user[event] != receiver:
                    relayed.setdefault((event, receiver), time)
                    if chat.user[event] in online:
                        pushed.setdefault((event, receiver), time)
            for event in everything - known[receiver]:
                told[event, receiver] = time
            known[receiver] |= everything
    return as_list(relayed), as_list(pushed), as_list(told)


def as_list(times: dict[tuple[int, int], int]) -> list[Reception]:
    return sorted(Reception(event, receiver, time) for (event, receiver), time in times.items())


def test_receptions_are_those_of_the_replay(at_any_time: Iterable[tuple[ChatIndex, Presence]]) -> None:
    checked = 0
    for index, presence in islice(at_any_time, 120):
        if presence.end.max() > 400:
            continue
        relayed, pushed, told = replay(index.chat, presence)
        assert relayed_receptions(index.chat, presence) == relayed
        assert direct_pushes(index.chat, presence) == pushed
        together = synchronised_receptions(index.chat, presence)
        assert sorted(together.direct + together.backfilled) == told
        assert set(together.direct) <= set(pushed)
        assert not set(together.backfilled) & set(pushed)
        checked += 1
    assert checked > 40


def test_a_message_is_brought_by_somebody_who_met_the_sender() -> None:
    """A speaks while B is there, and is gone when C comes; B tells C, relays would have told it too."""
    chat = chat_arrays([0, 8, 16], ["a", "b", "c"], [1, 1, 1])
    presence = periods_around(index_chat(chat), 5)
    assert list(zip(*(column.tolist() for column in presence), strict=True)) == [
        (0, 0, 5),
        (1, 3, 13),
        (2, 11, 21),
    ]
    assert direct_pushes(chat, presence) == [Reception(0, 1, 3), Reception(1, 2, 11)]
    together = synchronised_receptions(chat, presence)
    assert together.direct == [Reception(0, 1, 3), Reception(1, 2, 11)]
    assert together.backfilled == [Reception(0, 2, 11)]
    assert relayed_receptions(chat, presence) == [
        Reception(0, 1, 3),
        Reception(0, 2, 11),
        Reception(1, 2, 11),
    ]


def test_who_leaves_when_another_comes_has_not_met_it() -> None:
    chat = chat_arrays([0, 10], ["a", "b"], [1, 1])
    presence = periods_around(index_chat(chat), 5)
    assert direct_pushes(chat, presence) == []
    assert relayed_receptions(chat, presence) == [Reception(0, 1, 5)]
