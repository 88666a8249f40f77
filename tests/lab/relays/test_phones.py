"""Presence taken from phones."""

from __future__ import annotations

import numpy as np
import pytest

from linnet.lab.errors import LabError
from linnet.lab.relays.chat_arrays import chat_arrays, index_chat
from linnet.lab.relays.outcomes import outcomes
from linnet.lab.relays.phones import PhoneTrace, drawn, phone_presence
from linnet.lab.relays.presence import Presence

WEEK = 50_000
TRACES = [
    PhoneTrace(np.array([0, 20_000]), np.array([4_000, 30_000]), WEEK),
    PhoneTrace(np.array([45_000]), np.array([50_000]), WEEK),
    PhoneTrace(np.array([], np.int64), np.array([], np.int64), WEEK),
]
INDEX = index_chat(chat_arrays([0, 30_500, 110_000, 140_000], ["a", "b", "a", "b"], [1] * 4))


def is_online(presence: Presence, member: int, time: int) -> bool:
    return bool(((presence.member == member) & (presence.start <= time) & (time < presence.end)).any())


@pytest.mark.parametrize("phase", [0, 22_000, WEEK + 22_000])
def test_members_are_online_with_their_phone_and_when_they_send(phase: int) -> None:
    for seed in range(12):
        presence = phone_presence(INDEX, TRACES, seed, phase)
        for member in range(2):
            start, end, _ = TRACES[drawn(seed, member, len(TRACES))]
            sends = INDEX.ts[INDEX.user == member]
            for time in range(0, 190_000, 250):
                week = (time + phase) % WEEK
                by_phone = bool(((start <= week) & (week < end)).any())
                sending = bool(((sends - 1_000 <= time) & (time < sends + 1_000)).any())
                assert is_online(presence, member, time) == (by_phone or sending), (seed, member, time)
        assert presence.end.max() <= 190_000


def test_the_seed_decides_and_all_traces_are_drawn() -> None:
    assert {drawn(seed, 0, 3) for seed in range(40)} == {0, 1, 2}
    assert {drawn(7, member, 3) for member in range(40)} == {0, 1, 2}
    first, again = phone_presence(INDEX, TRACES, 4), phone_presence(INDEX, TRACES, 4)
    assert [column.tolist() for column in first] == [column.tolist() for column in again]


def test_outcomes_of_phones() -> None:
    outcome = outcomes(INDEX, phone_presence(INDEX, TRACES, 3))
    assert outcome.totals["relays", "later_than_p2p"] == 0
    assert outcome.totals["relays", "undelivered_though_online"] == 0
    assert sum(outcome.histograms["p2p", "first_delivery"].values()) == 4


@pytest.mark.parametrize(
    "traces",
    [[], [PhoneTrace(np.array([5]), np.array([5]), 10)], [PhoneTrace(np.array([5]), np.array([11]), 10)]],
)
def test_bad_traces_are_refused(traces: list[PhoneTrace]) -> None:
    with pytest.raises(LabError):
        phone_presence(INDEX, traces, 1)
