"""The baseline of the thesis: pushes of a retry queue, and what they bring with them."""

from __future__ import annotations

from collections.abc import Iterable

from linnet.lab.relays.chat_arrays import ChatIndex, chat_arrays, index_chat
from linnet.lab.relays.presence import Presence, periods_around
from linnet.lab.relays.receptions import Reception, direct_pushes, periods_of
from linnet.lab.relays.thesis import thesis_receptions


def first_of_events(receptions: Iterable[Reception]) -> dict[int, int]:
    first: dict[int, int] = {}
    for event, _, time in receptions:
        first[event] = min(time, first.get(event, time))
    return first


def first_of_periods(
    receptions: Iterable[Reception], presence: Presence, members: int
) -> dict[tuple[int, int], int]:
    first: dict[tuple[int, int], int] = {}
    periods = periods_of(presence, members)
    for _, receiver, time in receptions:
        start = next(a for a, b in periods[receiver] if a <= time < b)
        first[receiver, start] = min(time, first.get((receiver, start), time))
    return first


def test_backfill_changes_neither_first_deliveries_nor_first_receptions(
    at_any_time: Iterable[tuple[ChatIndex, Presence]],
    around_sends: Iterable[tuple[ChatIndex, Presence, int]],
) -> None:
    backfilled = 0
    cases = [*at_any_time, *((index, presence) for index, presence, _ in around_sends)]
    for index, presence in cases:
        pushes = direct_pushes(index.chat, presence)
        thesis = thesis_receptions(index.chat, presence)
        arrived, members = thesis.pushed + thesis.backfilled, index.chat.members
        assert thesis.pushed == pushes
        assert first_of_events(arrived) == first_of_events(pushes)
        assert first_of_periods(arrived, presence, members) == first_of_periods(pushes, presence, members)
        backfilled += len(thesis.backfilled)
    assert backfilled > len(cases)


def test_a_predecessor_comes_with_its_successor_only() -> None:
    """C comes while B is there but silent: nothing. B speaks: C gets that, and what A had told B."""
    chat = chat_arrays([0, 20, 32], ["a", "b", "c"], [1, 1, 1])
    index = index_chat(chat)
    presence = periods_around(index, 18)
    thesis = thesis_receptions(chat, presence)
    assert thesis.pushed == [
        Reception(0, 1, 2),
        Reception(0, 2, 14),
        Reception(1, 2, 20),
        Reception(2, 1, 32),
    ]
    assert thesis.backfilled == []
    narrow = periods_around(index, 11)
    thesis = thesis_receptions(chat, narrow)
    assert thesis.pushed == [Reception(0, 1, 9), Reception(1, 2, 21)]
    assert thesis.backfilled == [Reception(0, 2, 21)]
