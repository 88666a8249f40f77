"""Ranges of messages: local first, replays for the rest, in order, with one end."""

from __future__ import annotations

import pytest
from tests.places.stage import Stage
from tests.raised import reason_of

from linnet.core.errors import Refused
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.delivery.items import Ended, Item
from linnet.event.event import Spot, Tail
from linnet.event.signing import sign_unit
from linnet.places.channel.fragment_store import Fragments
from linnet.places.channel.packet import Header, encode_header, render
from linnet.places.channel.reassembly import Began, Finished, Reassembly
from linnet.places.config import PlacesConfig
from linnet.places.history_query import MOST_MESSAGES, History, HistoryStep, Told, Unheld, Wanted
from linnet.places.items import Body, Lost, PlaceItem, Said
from linnet.places.multicast.fragmentation import FRAGMENT, Flag, Head, encode_head
from linnet.store.memory import MemoryStore
from linnet.testing.identities import known_identity


def drain(stage: Stage, number: int) -> list[Item | PlaceItem]:
    found: list[Item | PlaceItem] = []
    while portion := stage.take(number):
        found += portion
        stage.consumed(number, len(portion))
    return found


def test_a_range_is_told_in_order_and_ends() -> None:
    stage = Stage()
    numbers = [stage.say(b"%d" % number) for number in range(5)]
    stage.watch(1, since=numbers[1], until=numbers[3])
    items = drain(stage, 1)
    assert [item.message for item in items if isinstance(item, Said)] == numbers[1:4]
    assert all(item.historic for item in items if isinstance(item, Said))
    assert items[-1] == Ended(None)
    stage.say(b"later")
    assert stage.take(1) == []


def test_the_newest_is_the_end_of_a_range_without_one_and_an_empty_range_ends_at_once() -> None:
    stage = Stage()
    numbers = [stage.say(b"x") for _ in range(3)]
    stage.watch(1, since=numbers[2], until=-1)
    assert [item.message for item in drain(stage, 1) if isinstance(item, Said)] == [numbers[2]]
    stage.watch(2, since=numbers[2] + 1, until=-1)
    assert stage.take(2) == [Ended(None)]
    assert stage.declined_watch(since=1, until=2, durable="x").reason is Reason.UNSUPPORTED


def test_a_long_body_comes_in_portions_and_from_any_byte_on() -> None:
    stage = Stage(PlacesConfig(watch_bytes=65_536))
    body = bytes(range(251)) * 2000
    number = stage.say(body)
    for watch, offset in enumerate((0, 1, 61_000, 61_440, 200_001, len(body) - 1, len(body), len(body) + 5)):
        stage.watch(watch, since=number, until=number, offset=offset)
        items = drain(stage, watch)
        data = [item for item in items if isinstance(item, Body)]
        assert b"".join(item.data for item in data) == body[offset:]
        assert data[-1].last
        assert (data[-1].offset, items[-1]) == (len(body), Ended(None))


def test_what_nobody_has_is_told_as_lost_in_its_turn() -> None:
    stage = Stage()
    numbers = [stage.say(b"%d" % number) for number in range(3)]
    fragments = stage.places._places[stage.place].parts.fragments
    row = fragments.get_at(numbers[1], 0)
    assert row is not None
    fragments.evicted(row)
    stage.watch(1, since=numbers[0], until=numbers[2])
    told = [item.message if isinstance(item, Said) else item for item in drain(stage, 1)]
    kept = [item for item in told if not isinstance(item, Body)]
    lost = Lost(stage.place, numbers[1], numbers[1], Reason.NOT_HELD)
    assert kept == [numbers[0], lost, numbers[2], Ended(None)]


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
        unit = sign_unit(
            voice.device, Spot(PLACE, voice.author, voice.card.device, head.fragment, None), [tail]
        )
        self.fragments.store(unit, head, 0.0)

    def history(self, first: int, last: int) -> History:
        return History(self.fragments, self.assembly, first, last)


def outline(steps: list[HistoryStep]) -> list[HistoryStep | int]:
    """Beginnings by their numbers, pieces and ends left out."""
    kept = [step for step in steps if isinstance(step, Began | Told | Unheld)]
    return [step.message if isinstance(step, Began) else step for step in kept]


def test_both_ends_of_the_range_are_told() -> None:
    history = Guest(1, 2, 3, 4, 5).history(2, 4)
    steps = list(history.tell())
    assert outline(steps) == [2, 3, 4, Told(2, 4)]
    assert [step.message for step in steps if isinstance(step, Finished)] == [2, 3, 4]
    assert list(history.tell()) == []


def test_what_is_absent_is_replayed_and_then_told_in_order() -> None:
    guest = Guest(1, 4)
    history = guest.history(1, 4)
    assert history.wanted(9) == [Wanted(2, 0), Wanted(3, 0)]
    assert history.wanted(1) == [Wanted(2, 0)]
    assert outline(list(history.tell())) == [1]
    guest.take(3)
    assert list(history.tell()) == []
    guest.take(2, end=17)
    assert history.wanted(9) == [Wanted(2, 17)]
    guest.take(2, begin=17)
    assert history.wanted(9) == []
    assert outline(list(history.tell())) == [2, 3, 4, Told(1, 4)]


def test_what_cannot_be_had_is_said_and_the_end_comes() -> None:
    history = Guest(1, 3).history(1, 3)
    history.give_up(2, Reason.NOT_ALLOWED)
    history.give_up(9, Reason.NOT_ALLOWED)
    assert history.wanted(9) == []
    assert outline(list(history.tell())) == [
        1,
        Unheld(2, Reason.NOT_ALLOWED),
        3,
        Told(1, 3),
    ]


@pytest.mark.parametrize(
    ("first", "last", "reason"),
    [(0, 3, Reason.MALFORMED), (3, 2, Reason.MALFORMED), (1, MOST_MESSAGES + 1, Reason.TOO_MANY)],
)
def test_what_is_no_range_is_refused(first: int, last: int, reason: Reason) -> None:
    assert reason_of(Refused, Guest().history, first, last) is reason
