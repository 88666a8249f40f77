"""First deliveries against every single reception."""

from __future__ import annotations

from collections.abc import Iterable

from linnet.lab.relays.attendance import attend
from linnet.lab.relays.chat_arrays import ChatIndex, chat_arrays, index_chat
from linnet.lab.relays.deliveries import UNDELIVERED, first_deliveries
from linnet.lab.relays.presence import Presence, periods_around
from linnet.lab.relays.receptions import Reception, direct_pushes, relayed_receptions


def first_of_events(receptions: Iterable[Reception], events: int) -> list[int]:
    first: dict[int, int] = {}
    for event, _, time in receptions:
        first[event] = min(time, first.get(event, time))
    return [first.get(event, UNDELIVERED) for event in range(events)]


def test_first_deliveries_are_the_first_receptions(
    around_sends: Iterable[tuple[ChatIndex, Presence, int]],
    at_any_time: Iterable[tuple[ChatIndex, Presence]],
) -> None:
    for index, presence in [*at_any_time, *((index, presence) for index, presence, _ in around_sends)]:
        chat, events = index.chat, len(index.chat.ts)
        first = first_deliveries(attend(index, presence))
        assert first.p2p.tolist() == first_of_events(direct_pushes(chat, presence), events)
        assert first.relays.tolist() == first_of_events(relayed_receptions(chat, presence), events)


def test_a_sender_meets_somebody_in_a_later_period() -> None:
    """A speaks alone, comes again while B is there, and last when nobody comes any more."""
    index = index_chat(chat_arrays([0, 100, 104, 300], ["a", "b", "a", "a"], [1] * 4))
    first = first_deliveries(attend(index, periods_around(index, 10)))
    assert first.p2p.tolist() == [94, 100, 104, UNDELIVERED]
    assert first.relays.tolist() == [90, 100, 104, UNDELIVERED]


def test_an_own_return_is_no_delivery() -> None:
    index = index_chat(chat_arrays([0, 100, 200], ["a", "a", "b"], [1] * 3))
    first = first_deliveries(attend(index, periods_around(index, 10)))
    assert first.relays.tolist() == [190, 190, UNDELIVERED]
    assert first.p2p.tolist() == [UNDELIVERED] * 3
