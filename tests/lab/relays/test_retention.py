"""Relays that forget, against every single reception."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from linnet.lab.bins import NEVER, count_bins
from linnet.lab.errors import LabError
from linnet.lab.relays.chat_arrays import ChatIndex, chat_arrays, index_chat
from linnet.lab.relays.presence import Presence, periods_around
from linnet.lab.relays.receptions import direct_pushes, relayed_receptions
from linnet.lab.relays.retention import retention_outcomes

RETENTIONS = (0, 1, 3, 10, 45, 200, 10_000)


def expected_first(index: ChatIndex, presence: Presence, retention: int) -> dict[int, int]:
    """What relays deliver while they have it, or the sender at any time."""
    times, first = index.chat.ts.tolist(), dict[int, int]()
    relayed = [
        one for one in relayed_receptions(index.chat, presence) if one.time - times[one.event] <= retention
    ]
    for event, _, time in relayed + direct_pushes(index.chat, presence):
        first[event] = min(time, first.get(event, time))
    return count_bins(np.array([first[e] - times[e] if e in first else NEVER for e in range(len(times))]))


def test_outcomes_are_those_of_all_receptions(at_any_time: Iterable[tuple[ChatIndex, Presence]]) -> None:
    for index, presence in at_any_time:
        times = index.chat.ts.tolist()
        begun = {member: presence.start[presence.member == member].min() for member in presence.member}
        waits = [
            (time - times[event], begun[receiver] <= times[event])
            for event, receiver, time in relayed_receptions(index.chat, presence)
        ]
        for outcome, retention in zip(
            retention_outcomes(index, presence, RETENTIONS), RETENTIONS, strict=True
        ):
            assert outcome.retention == retention
            assert outcome.pairs.every == sum(wait <= retention for wait, _ in waits)
            assert outcome.pairs.owed == sum(wait <= retention and owed for wait, owed in waits)
            assert outcome.first_delivery == expected_first(index, presence, retention)


def test_retention_is_not_negative() -> None:
    index = index_chat(chat_arrays([0], ["a"], [1]))
    with pytest.raises(LabError, match="-3"):
        retention_outcomes(index, periods_around(index, 5), [5, -3])
