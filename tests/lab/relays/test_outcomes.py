"""All measures of a chat, against every single reception."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from linnet.lab.bins import NEVER, count_bins
from linnet.lab.relays.attendance import attend
from linnet.lab.relays.chat_arrays import ChatIndex, chat_arrays, index_chat
from linnet.lab.relays.deliveries import Deliveries, first_deliveries
from linnet.lab.relays.held import EVENT_OVERHEAD
from linnet.lab.relays.outcomes import MODES, outcomes
from linnet.lab.relays.outcomes import _later as later
from linnet.lab.relays.outcomes import _undelivered_though_online as undelivered_though_online
from linnet.lab.relays.presence import Presence, periods_around
from linnet.lab.relays.receptions import Reception, direct_pushes, relayed_receptions


def delivery_bins(index: ChatIndex, receptions: list[Reception]) -> dict[int, int]:
    first: dict[int, int] = {}
    for event, _, time in receptions:
        first[event] = min(time, first.get(event, time))
    times = index.chat.ts.tolist()
    return count_bins(np.array([first[e] - times[e] if e in first else NEVER for e in range(len(times))]))


def return_bins(presence: Presence, receptions: list[Reception]) -> dict[int, int]:
    waits = []
    for member, start, end in zip(*(column.tolist() for column in presence), strict=True):
        times = [one.time for one in receptions if one.receiver == member and start <= one.time < end]
        waits.append(min(times) - start if times else NEVER)
    return count_bins(np.array(waits))


def test_histograms_and_sums_are_those_of_all_receptions(
    around_sends: Iterable[tuple[ChatIndex, Presence, int]],
) -> None:
    for index, presence, margin in around_sends:
        outcome, chat = outcomes(index, presence, margin), index.chat
        pushed, relayed = direct_pushes(chat, presence), relayed_receptions(chat, presence)
        for mode in MODES:
            receptions = relayed if mode == "relays" else pushed
            assert outcome.histograms[mode, "first_delivery"] == delivery_bins(index, receptions)
            assert outcome.histograms[mode, "return_reception"] == return_bins(presence, receptions)
        waits = [time - int(chat.ts[event]) for event, _, time in relayed]
        assert outcome.totals == {
            ("all", "events"): len(chat.ts),
            ("all", "periods"): len(presence.start),
            ("all", "bytes"): int(chat.chars.sum()) + EVENT_OVERHEAD * len(chat.ts),
            ("all", "pairs"): len(chat.ts) * (chat.members - 1),
            ("relays", "pairs_at_once"): waits.count(0),
            ("relays", "pairs_after_waiting"): sum(wait > 0 for wait in waits),
            ("relays", "pairs_waited_s"): sum(waits) // 1000,
            ("relays", "held_event_s"): int((chat.ts[-1] - chat.ts).sum()) // 1000,
            ("relays", "held_byte_s"): int(((chat.ts[-1] - chat.ts) * (chat.chars + EVENT_OVERHEAD)).sum())
            // 1000,
            ("relays", "later_than_p2p"): 0,
            ("relays", "undelivered_though_online"): 0,
        }


def test_any_presence_gives_the_same_without_its_margin(
    around_sends: Iterable[tuple[ChatIndex, Presence, int]],
) -> None:
    for index, presence, margin in around_sends:
        assert outcomes(index, presence) == outcomes(index, presence, margin)


def test_neither_a_second_run_nor_the_numbers_of_members_change_anything(
    around_sends: Iterable[tuple[ChatIndex, Presence, int]],
) -> None:
    for index, presence, margin in around_sends:
        chat = index.chat
        backwards = index_chat(chat._replace(user=(chat.members - 1 - chat.user).astype(np.int32)))
        outcome = outcomes(index, presence, margin)
        assert outcome == outcomes(index_chat(chat), presence, margin)
        assert outcome == outcomes(backwards, periods_around(backwards, margin), margin)


def test_the_checks_find_what_must_not_be() -> None:
    """Deliveries that are late or missing are counted, whoever was the last to be online."""
    index = index_chat(chat_arrays([0, 100, 200, 300], ["a", "b", "a", "a"], [1] * 4))
    attendance = attend(index, periods_around(index, 10))
    right = first_deliveries(attendance)
    assert right.relays.tolist() == [90, 190, -1, -1]
    assert undelivered_though_online(attendance, right.relays) == 0
    assert undelivered_though_online(attendance, np.array([-1, -1, -1, -1])) == 2
    assert later(Deliveries(np.array([5, 5, -1, -1, 0]), np.array([5, 6, 7, -1, -1]))) == 2


def test_somebody_alone_reaches_nobody() -> None:
    index = index_chat(chat_arrays([0, 5_000], ["a", "a"], [3, 4]))
    outcome = outcomes(index, periods_around(index, 1_000), 1_000)
    assert outcome.histograms["relays", "first_delivery"] == {NEVER: 2}
    assert outcome.histograms["p2p", "return_reception"] == {NEVER: 2}
    assert outcome.totals["relays", "undelivered_though_online"] == 0
