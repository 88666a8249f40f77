"""Sending to a relay: batches, outcomes, what it misses, and bounds on all of it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.driven import Driven
from tests.rooms.relay_voices import DEVICE, ROOM, cursor, event_id, parcel, relay_id, tick, unit

from linnet.core.effects import AfterCommit, CancelTimer, Send, SetTimer
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.rooms.config import RoomsConfig
from linnet.rooms.messages import RelayOutcome, RelaySend, RelayTaken
from linnet.rooms.relay_client.relay_session import (
    QUEUE_BYTES,
    QUEUE_EVENTS,
    TRIES,
    GiveMissing,
    GiveUnsent,
    Kept,
    NotKept,
    RelayUpload,
)
from linnet.trace.records import Kind, Record

RELAY = relay_id(0)
CONFIG = RoomsConfig(relay_timeout=5.0, page_events=3, page_bytes=100, rejected=3)
GIVE = GiveUnsent(RELAY, 3)
ANSWERED = CancelTimer(tick("sent", RELAY))
STALE = Record(Kind.REJECTED, ROOM, peer=RELAY, reason=Reason.STALE)


def sending() -> Driven:
    one = Driven(lambda out: RelayUpload(ROOM, RELAY, CONFIG, out))
    assert one.begin() == [GIVE]
    return one


def answer(one: Driven, taken: RelayTaken) -> tuple[list[Any], Reason | None]:
    failure = one.handle_answer(taken)
    return one.out.take_said(), failure


def batch(request: int, *numbers: int, size: int = 10) -> list[Any]:
    send = RelaySend(ROOM, request, tuple(unit(number, size) for number in numbers), (), signed=True)
    sent = [
        Record(Kind.SENT, ROOM, event_id(number), DEVICE, number, peer=RELAY, bytes=size, note="message")
        for number in numbers
    ]
    promised: tuple[Send[RelaySend] | Record, ...] = (Send(RELAY, send), *sent)
    return [*(AfterCommit((each,)) for each in promised), SetTimer(5.0, tick("sent", RELAY))]


def kept(number: int) -> RelayOutcome:
    return RelayOutcome(event_id(number), cursor(number), None, ())


def refused(number: int, reason: Reason = Reason.NO_POWER) -> RelayOutcome:
    return RelayOutcome(event_id(number), None, reason, ())


def lacks(number: int, *missing: int) -> RelayOutcome:
    return RelayOutcome(
        event_id(number), None, Reason.MISSING_DEPENDENCY, tuple(event_id(one) for one in missing)
    )


def is_kept(number: int) -> list[Any]:
    record = Record(Kind.ACKED, ROOM, event_id(number), DEVICE, number, peer=RELAY, note="message")
    return [record, Kept(RELAY, event_id(number), cursor(number), None)]


def is_not_kept(event: EventId, reason: Reason) -> list[Any]:
    record = Record(Kind.REJECTED, ROOM, event, peer=RELAY, reason=reason, note="relay")
    return [record, NotKept(RELAY, event, reason)]


def answered(one: Driven, request: int, *outcomes: RelayOutcome) -> list[Any]:
    effects, failure = answer(one, RelayTaken(ROOM, request, outcomes, None))
    assert failure is None
    return effects


def test_what_comes_while_an_answer_is_awaited_goes_as_one_batch() -> None:
    one = sending()
    assert one.put([parcel(1)]) == batch(1, 1)
    assert one.put([parcel(2), parcel(3), parcel(1)]) == []
    assert one.put([parcel(4), parcel(5), parcel(2)]) == []
    assert answered(one, 1, kept(1)) == [ANSWERED, *is_kept(1), *batch(2, 2, 3, 4)]
    third = answered(one, 2, kept(2), kept(3), kept(4))
    assert third == [ANSWERED, *is_kept(2), *is_kept(3), *is_kept(4), *batch(3, 5)]
    assert answered(one, 3, kept(5)) == [ANSWERED, *is_kept(5)]
    assert one.is_idle


def test_a_batch_is_bounded_in_bytes_and_holds_one_event_at_least() -> None:
    one = sending()
    assert one.put([parcel(1, 60), parcel(2, 60)]) == batch(1, 1, size=60)
    other = sending()
    assert other.put([parcel(1, 5000)]) == batch(1, 1, size=5000)


def test_without_a_link_nothing_waits_here_and_all_is_asked_for_when_there_is_one() -> None:
    one = Driven(lambda out: RelayUpload(ROOM, RELAY, CONFIG, out))
    assert one.put([parcel(1)]) == []
    assert one.send_unsent([parcel(1)], more=False) == []
    assert one.begin() == [GIVE]
    assert one.send_unsent([parcel(1), parcel(2)], more=False) == batch(1, 1, 2)
    assert one.end() == [ANSWERED]
    assert one.begin() == [GIVE]
    assert one.send_unsent([parcel(1), parcel(2)], more=False) == batch(2, 1, 2)
    assert answer(one, RelayTaken(ROOM, 1, (kept(1),), None)) == ([STALE], None)


def test_more_is_asked_for_when_what_was_given_has_gone() -> None:
    one = sending()
    one.send_unsent([parcel(1), parcel(2)], more=True)
    assert answered(one, 1, kept(1), kept(2)) == [ANSWERED, *is_kept(1), *is_kept(2), GIVE]
    # Nothing new was given, so there is no use in asking for ever.
    assert one.send_unsent([], more=True) == []
    assert one.put([parcel(3)]) == batch(2, 3)
    assert answered(one, 2, kept(3)) == [ANSWERED, *is_kept(3)]


def test_more_is_asked_for_too_if_what_was_given_is_on_its_way_already() -> None:
    one = sending()
    assert one.put([parcel(1), parcel(2)]) == batch(1, 1, 2)
    assert one.send_unsent([parcel(1), parcel(2)], more=True) == []
    assert answered(one, 1, kept(1), kept(2))[-1] == GIVE


@pytest.mark.parametrize(("size", "fit"), [(1, QUEUE_EVENTS), (QUEUE_BYTES // 4, 4)])
def test_the_queue_is_bounded_and_what_did_not_fit_is_asked_for(size: int, fit: int) -> None:
    one = sending()
    one.put([parcel(0)])
    one.put([parcel(number, size) for number in range(1, 2 * fit)])
    assert not one.is_idle
    request, effects = 1, answered(one, 1, kept(0))
    while not one.is_idle:
        sent = next(effect.effects[0] for effect in effects if isinstance(effect, AfterCommit))
        assert isinstance(sent, Send)
        assert isinstance(sent.message, RelaySend)
        request += 1
        effects = answered(one, request, *(kept(unit.seq or 0) for unit in sent.message.units))
    last = [effect.event for effect in effects if isinstance(effect, Kept)][-1]
    assert last == event_id(fit)
    assert effects[-1] == GIVE


def test_what_one_relay_refused_is_not_sent_there_again() -> None:
    one = sending()
    one.put([parcel(1)])
    assert answered(one, 1, refused(1)) == [ANSWERED, *is_not_kept(event_id(1), Reason.NO_POWER)]
    assert one.put([parcel(1)]) == []
    assert (one.takes(event_id(1)), one.takes(event_id(2))) == (False, True)
    one.end()
    one.begin()
    assert one.send_unsent([parcel(1)], more=True) == []
    assert one.send_again() == [GIVE]
    assert one.send_unsent([parcel(1)], more=False) == batch(2, 1)


def test_refusals_are_remembered_up_to_a_bound() -> None:
    one = sending()
    for number in range(4):
        one.put([parcel(number)])
        answered(one, number + 1, refused(number))
    assert [one.takes(event_id(number)) for number in range(4)] == [True, False, False, False]


def test_what_the_relay_misses_goes_first_and_then_the_event_again() -> None:
    one = sending()
    one.put([parcel(9), parcel(8)])
    one.put([parcel(7), parcel(2)])
    missing = GiveMissing(RELAY, event_id(9), (event_id(1), event_id(2)))
    effects = answered(one, 1, lacks(9, 1, 2), kept(8))
    assert effects == [ANSWERED, missing, *is_kept(8), *batch(2, 7, 2)]
    assert one.send_missing(event_id(9), [parcel(1), parcel(2)]) == []
    assert answered(one, 2, kept(7), kept(2))[-4:] == batch(3, 1, 9)
    assert answered(one, 3, kept(1), kept(9)) == [ANSWERED, *is_kept(1), *is_kept(9)]
    assert one.send_missing(event_id(9), [parcel(1)]) == []


def test_a_relay_that_misses_something_for_ever_is_not_told_for_ever() -> None:
    one = sending()
    one.put([parcel(9)])
    for request in range(1, TRIES):
        assert isinstance(answered(one, request, lacks(9, 1))[-1], GiveMissing)
        assert one.send_missing(event_id(9), []) == batch(request + 1, 9)
    effects = answered(one, TRIES, lacks(9, 1))
    assert effects == [ANSWERED, *is_not_kept(event_id(9), Reason.MISSING_DEPENDENCY)]
    assert one.is_idle


def test_a_relay_that_does_not_say_what_became_of_an_event_is_asked_a_few_times() -> None:
    one = sending()
    one.put([parcel(1), parcel(2)])
    for request in range(1, TRIES):
        outcomes = (kept(2), kept(77)) if request == 1 else ()
        assert answered(one, request, *outcomes)[-3:] == batch(request + 1, 1)
    effects = answered(one, TRIES)
    assert effects == [ANSWERED, *is_not_kept(event_id(1), Reason.UNKNOWN)]


def test_a_relay_that_looks_at_nothing_is_of_no_use() -> None:
    one = sending()
    one.put([parcel(1)])
    assert answer(one, RelayTaken(ROOM, 1, (), Reason.NOT_A_MEMBER)) == ([ANSWERED], Reason.NOT_A_MEMBER)
