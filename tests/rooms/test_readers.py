"""Subscriptions of a room: what they see, and what they are told."""

from __future__ import annotations

from random import Random

from tests.driven import Driven
from tests.rooms.bench import Bench

from linnet.core.effects import AfterCommit, Deliver
from linnet.core.ids import EventId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.commands import Consumed, Declined, Done, Unsubscribe
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.context import Context
from linnet.delivery.items import CaughtUp, Ended, Overdue, Unreadable
from linnet.event.event import Event
from linnet.event.signing import verify_unit
from linnet.peer.interface import Effect, Handed, Promise
from linnet.rooms.commands import ReadRoom, Redact, SendToRoom, SetMembership, SetState
from linnet.rooms.content import NAME, Membership
from linnet.rooms.results import Reading
from linnet.rooms.room_store import RoomMemory
from linnet.rooms.subscriptions import Readers
from linnet.store.memory import MemoryStore
from linnet.testing.identities import known_identity
from linnet.trace.records import Kind, Record


def items(effects: list[Effect | Promise], subscription: int) -> list[Handed]:
    return [
        item
        for each in effects
        if isinstance(each, Deliver) and each.subscription == subscription
        for item in each.items
    ]


def bodies(effects: list[Effect | Promise], subscription: int) -> list[bytes]:
    return [item.body for item in items(effects, subscription) if isinstance(item, Event)]


def test_a_reader_of_messages_is_handed_no_state() -> None:
    bench = Bench()
    bench.ask(ReadRoom(2, bench.id, None, None, state=False))
    bench.effects.clear()
    bench.say(SetState(bench.id, NAME, "", b"coffee"))
    (first,) = bench.say(SendToRoom(bench.id, (b"hello",)))
    bench.say(Redact(bench.id, first))
    assert bodies(bench.effects, 2) == [b"hello"]
    assert len(bodies(bench.effects, 1)) == 3


def test_a_new_one_is_handed_what_it_asks_for() -> None:
    bench = Bench()
    bench.say(SendToRoom(bench.id, (b"old",)))
    bench.now += 10.0
    middle = bench.now
    bench.say(SendToRoom(bench.id, (b"middle",)))
    bench.now += 10.0
    bench.say(SendToRoom(bench.id, (b"new",)))
    assert bodies(bench.asked(ReadRoom(2, bench.id, 0.0, None, state=False)), 2) == [
        b"old",
        b"middle",
        b"new",
    ]
    assert bodies(bench.asked(ReadRoom(3, bench.id, middle, None, state=False)), 3) == [b"middle", b"new"]
    effects = bench.asked(ReadRoom(4, bench.id, None, None, state=False))
    assert [type(item) for item in items(effects, 4)] == [CaughtUp]


def test_a_durable_one_is_resumed_and_is_read_once_at_a_time() -> None:
    bench = Bench()
    first = bench.ask(ReadRoom(2, bench.id, 0.0, "app", state=False))
    assert first == Reading(bench.id, False)
    declined = bench.ask(ReadRoom(3, bench.id, 0.0, "app", state=False))
    assert isinstance(declined, Declined)
    assert declined.reason is Reason.IN_USE
    bench.say(SendToRoom(bench.id, (b"one", b"two")))
    assert bench.ask(Consumed(2, 2)) == Done()  # the word that all was read, and the first
    assert bench.ask(Unsubscribe(2)) == Done()
    effects = bench.asked(ReadRoom(3, bench.id, 0.0, "app", state=False))
    assert Reading(bench.id, True) in [getattr(each, "result", None) for each in effects]
    assert bodies(effects, 3) == [b"two"]


def test_history_ends_and_no_event_is_recorded_as_lost_to_it() -> None:
    bench = Bench()
    bench.say(SendToRoom(bench.id, (b"old",)))
    effects = bench.asked(ReadRoom(2, bench.id, 0.0, None, state=False, live=False))
    assert [type(item) for item in items(effects, 2)] == [Event, CaughtUp, Ended]
    effects = bench.asked(SendToRoom(bench.id, (b"new",)))
    assert items(effects, 2) == []
    assert bench.records(Kind.DROPPED, effects) == []


def test_what_came_too_late_is_history_and_what_failed_softly_is_nothing() -> None:
    bench = Bench()
    bench.join("bob", "cid")
    deps, control = bench.room.dag.heads, bench.room.control.heads
    gone = bench.forge("cid", body=b"late")
    after = bench.forge("cid", body=b"after", deps=(gone.head,))
    bench.bring("cid", after)
    bench.brought_about(
        lambda: bench.room.passing.pass_on(bench.room.intake.expire(gone.head, bench.now), bench.now)
    )
    bench.say(SetMembership(bench.id, bench.who("bob").author, Membership.BAN))
    bench.bring("cid", gone, bench.forge("bob", body=b"soft", deps=deps, control=control))
    assert len(bench.room.parts.memory.hidden) == 2
    live = bench.asked(ReadRoom(2, bench.id, 0.0, None, state=False))
    assert bodies(live, 2) == [b"after"]
    history = bench.asked(ReadRoom(3, bench.id, 0.0, None, state=False, live=False))
    assert bodies(history, 3) == [b"late", b"after"]


def test_what_was_taken_back_is_handed_without_its_words() -> None:
    bench = Bench()
    (oops,) = bench.say(SendToRoom(bench.id, (b"oops",)))
    bench.say(Redact(bench.id, oops))
    effects = bench.asked(ReadRoom(2, bench.id, 0.0, None, state=False))
    (seen,) = [item for item in items(effects, 2) if isinstance(item, Unreadable)]
    assert (seen.event.id, seen.event.body, seen.reason) == (oops, b"", Reason.REDACTED)
    assert seen.by == seen.event.author


def test_a_deadline_is_told_to_all_who_read() -> None:
    bench = Bench()
    bench.join("bob")
    bench.ask(ReadRoom(2, bench.id, None, None))
    bench.effects.clear()
    (event,) = bench.say(SendToRoom(bench.id, (b"quick",), deadline=5.0))
    bench.now += 5.0
    overdue = bench.room.ledger.handle_deadline(bench.room.parts.author.seq)
    assert overdue == Overdue(bench.id, event, (bench.who("bob").author,))
    bench.room.parts.out.clear()
    effects = bench.brought_about(lambda: bench.room.parts.readers.tell_overdue(overdue))
    told = [each.effects[0] for each in effects]
    assert [each.subscription for each in told if isinstance(each, Deliver)] == [1, 2]
    assert len(told) == 2


def test_one_that_is_not_there_is_not_handed_anything() -> None:
    bench = Bench()
    readers = bench.room.parts.readers
    assert (1 in readers, 2 in readers, len(readers)) == (True, False, 1)
    assert bench.brought_about(lambda: readers.handle_consumed(2, 1)) == []
    assert bench.brought_about(lambda: readers.remove(2)) == []
    assert bench.ask(Unsubscribe(1)) == Done()
    assert len(readers) == 0


def test_one_that_leaves_too_much_unread_ends_and_this_is_recorded() -> None:
    """Events wait in the log, but what is no event waits in memory, and that has an end."""
    room, store, ann = TopicId(b"r" * 32), MemoryStore(), known_identity("ann")
    config = DeliveryConfig(window_items=1, buffer_items=1)
    context = Context(ann.device, ann.card, store, config, Random(1), verify_unit)
    readers = Driven(lambda out: Readers(room, context, RoomMemory(room, store, 10), out))
    readers.add(ReadRoom(2, room, None, None))
    readers.hand_log(2)
    late = Overdue(room, EventId(b"e" * 32), ())
    assert readers.tell_overdue(late) == []
    ended: Deliver[Handed] = Deliver(2, (Ended(Reason.SUBSCRIBER_SLOW),))
    record = Record(Kind.DROPPED, room, reason=Reason.SUBSCRIBER_SLOW)
    assert readers.tell_overdue(late) == [AfterCommit((ended,)), AfterCommit((record,))]
    assert readers.tell_overdue(late) == []
