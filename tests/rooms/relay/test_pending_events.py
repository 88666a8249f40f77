"""Events that wait for control events."""

from __future__ import annotations

from tests.rooms.chronicle import person
from tests.rooms.relay.scenes import World, card_of, peer_of

from linnet.core.ids import EventId
from linnet.event.event import Verified
from linnet.rooms.relay.access_control import Caller
from linnet.rooms.relay.ingest import BYTES, SHARE, Origin, PendingEvent, PendingEvents

WORLD = World()
CARD = card_of("ann")
ONE, TWO = EventId(b"1" * 32), EventId(b"2" * 32)


def origin(who: str = "ann") -> Origin:
    return Origin(Caller(peer_of(who), person(who).author), False, 1)


def said(size: int = 5) -> Verified:
    return WORLD.chronicle.units[WORLD.say("ann", b"." * size).id]


def test_an_event_waits_for_all_that_it_names() -> None:
    pending = PendingEvents(100)
    unit = said()
    assert pending.add(PendingEvent(unit, CARD, origin(), (ONE, TWO)))
    assert pending.waiting_for(ONE) == [unit.events[0]]
    pending.settle(ONE)
    assert not pending.ready
    pending.settle(TWO)
    (ready,) = pending.ready
    assert ready.verified is unit
    assert (len(pending), pending.get(unit.head)) == (0, None)


def test_what_cannot_be_had_is_waited_for_no_longer() -> None:
    pending = PendingEvents(100)
    units = [said() for _ in range(3)]
    for unit, missing in zip(units, ((ONE,), (ONE, TWO), (TWO,)), strict=True):
        pending.add(PendingEvent(unit, CARD, origin(), missing))
    lost = pending.give_up([ONE])
    assert [each.verified for each in lost] == units[:2]
    assert list(lost[1].missing) == [ONE, TWO]
    pending.settle(TWO)
    assert [each.verified for each in pending.ready] == units[2:]


def test_one_peer_has_a_part_of_the_places_and_all_have_an_end() -> None:
    pending = PendingEvents(8)
    taken = {
        who: [pending.add(PendingEvent(said(), CARD, origin(who), (ONE,))) for _ in range(3)]
        for who in ("ann", "ben", "cyd", "dan", "eve")
    }
    assert 8 // SHARE == 2
    assert taken == {who: [True, True, False] for who in ("ann", "ben", "cyd", "dan")} | {"eve": [False] * 3}
    pending.settle(ONE)
    assert pending.add(PendingEvent(said(), CARD, origin(), (ONE,)))


def test_bytes_are_counted_too() -> None:
    pending = PendingEvents(10**9)
    first = said(250_000)
    fits = BYTES // sum(map(len, first.unit.tails))
    units = [said(250_000) for _ in range(fits)]
    assert [pending.add(PendingEvent(unit, CARD, origin(), (ONE,))) for unit in (first, *units)] == [
        True
    ] * fits + [False]
    pending.give_up([ONE])
    assert pending.add(PendingEvent(units[-1], CARD, origin(), (ONE,)))
