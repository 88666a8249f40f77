"""Ranges of messages: local first, replays for the rest, and one end."""

from __future__ import annotations

import pytest

from linnet.core.errors import Refused
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.event.event import Tail
from linnet.event.signing import sign_unit
from linnet.places.channel.fragment_store import Fragments
from linnet.places.channel.history import MOST_MESSAGES, History, HistoryStep, Told, Unheld, Wanted
from linnet.places.channel.packet import Header, encode_header, render
from linnet.places.channel.reassembly import Began, Finished, Reassembly
from linnet.places.multicast.fragmentation import FRAGMENT, Flag, Head, encode_head
from linnet.store.memory import MemoryStore
from linnet.testing.identities import known_identity

PLACE = TopicId(b"place..." * 4)
SECTION = render((), "_message")
TEXT = encode_header(Header(len(SECTION))) + SECTION + b"hello"


class Guest:
    def __init__(self, *messages: int) -> None:
        store = MemoryStore()
        self.fragments = Fragments(PLACE, store.log, store.cells)
        self.assembly = Reassembly(self.fragments)
        for message in messages:
            self.take(message)

    def take(self, message: int, begin: int = 0, end: int = len(TEXT)) -> None:
        """Message m has the fragments 2m and, if it is in two pieces, 2m + 1."""
        flags = Flag.FIRST * (begin == 0) | Flag.LAST * (end == len(TEXT))
        head = Head(1, 2 * message + (begin > 0), message, begin, 0, flags)
        voice = known_identity("host")
        tail = Tail(None, None, None, None, FRAGMENT, None, 0, encode_head(head), TEXT[begin:end])
        unit = sign_unit(voice.device, PLACE, voice.author, voice.card.device, head.fragment, None, [tail])
        self.fragments.store(unit, head, 0.0)

    def history(self, first: int, last: int) -> History:
        return History(self.fragments, self.assembly, first, last)


def outline(steps: list[HistoryStep]) -> list[HistoryStep | tuple[int, bool]]:
    """Beginnings as number and mark, pieces and ends left out."""
    kept: list[HistoryStep | tuple[int, bool]] = []
    for step in steps:
        if isinstance(step, Began):
            kept.append((step.message, step.historic))
        elif isinstance(step, Told | Unheld):
            kept.append(step)
    return kept


def test_both_ends_of_the_range_are_told_and_marked_historic() -> None:
    history = Guest(1, 2, 3, 4, 5).history(2, 4)
    steps = list(history.tell())
    assert outline(steps) == [(2, True), (3, True), (4, True), Told(2, 4)]
    assert [step.message for step in steps if isinstance(step, Finished)] == [2, 3, 4]
    assert history.done
    assert list(history.tell()) == []


def test_what_is_absent_is_replayed_and_then_told_in_order() -> None:
    guest = Guest(1, 4)
    history = guest.history(1, 4)
    assert history.wanted(9) == [Wanted(2, 0), Wanted(3, 0)]
    assert history.wanted(1) == [Wanted(2, 0)]
    assert outline(list(history.tell())) == [(1, True)]
    guest.take(3)
    assert list(history.tell()) == []
    guest.take(2, end=17)
    assert history.wanted(9) == [Wanted(2, 17)]
    guest.take(2, begin=17)
    assert history.wanted(9) == []
    assert outline(list(history.tell())) == [(2, True), (3, True), (4, True), Told(1, 4)]


def test_what_cannot_be_had_is_said_and_the_end_comes() -> None:
    history = Guest(1, 3).history(1, 3)
    history.give_up(2, Reason.NOT_ALLOWED)
    history.give_up(9, Reason.NOT_ALLOWED)
    assert history.wanted(9) == []
    assert outline(list(history.tell())) == [
        (1, True),
        Unheld(2, Reason.NOT_ALLOWED),
        (3, True),
        Told(1, 3),
    ]


@pytest.mark.parametrize(
    ("first", "last", "reason"),
    [(0, 3, Reason.MALFORMED), (3, 2, Reason.MALFORMED), (1, MOST_MESSAGES + 1, Reason.TOO_MANY)],
)
def test_what_is_no_range_is_refused(first: int, last: int, reason: Reason) -> None:
    with pytest.raises(Refused) as error:
        Guest().history(first, last)
    assert error.value.reason is reason
