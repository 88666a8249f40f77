"""Times in a room that cannot be right: every reader sees the mark, and nothing waits for them."""

from __future__ import annotations

from tests.rooms.bench import Bench

from linnet.core.effects import Deliver
from linnet.core.ids import EventId
from linnet.delivery.commands import Unsubscribe
from linnet.delivery.items import Inserted, Unreadable
from linnet.event.event import Event
from linnet.rooms.commands import ExamineState, ReadRoom, Redact, StateIs
from linnet.rooms.event_types import MEMBER, Member, Membership, body_of, member_key

HOUR, MONTH = 3600, 30 * 86_400


def ms(moment: float) -> int:
    return int(moment * 1000)


def marks(bench: Bench, subscription: int) -> dict[EventId, bool]:
    found: dict[EventId, bool] = {}
    for effect in bench.effects:
        if isinstance(effect, Deliver) and effect.subscription == subscription:
            for item in effect.items:
                event = item.event if isinstance(item, Unreadable) else item
                if isinstance(event, Event) and event.kind == "message":
                    found[event.id] = event.doubtful
    return found


def test_a_time_to_come_is_marked_for_live_durable_and_history_readers() -> None:
    bench = Bench("bob")
    bench.ask(ReadRoom(2, bench.id, None, "kept"))
    ahead = bench.forge("bob", time=ms(bench.now + 3 * HOUR))
    bench.bring("bob", ahead)
    never = bench.forge("bob", time=ms(bench.now + MONTH))
    bench.bring("bob", never)
    right = bench.forge("bob", time=ms(bench.now + 200))
    bench.bring("bob", right)
    expected = {ahead.head: True, never.head: True, right.head: False}
    assert marks(bench, 1) == marks(bench, 2) == expected
    bench.ask(ReadRoom(3, bench.id, 0.0, live=False))
    assert marks(bench, 3) == expected


def test_the_mark_stays_when_the_time_has_come_and_over_a_restart() -> None:
    bench = Bench("bob")
    ahead = bench.forge("bob", time=ms(bench.now + HOUR))
    bench.bring("bob", ahead)
    bench.now += 2 * HOUR
    for number in (5, 6):
        bench.ask(ReadRoom(number, bench.id, 0.0, live=False))
        assert marks(bench, number) == {ahead.head: True}
        bench.restart()


def test_an_event_before_its_cause_is_marked_and_the_cause_is_not() -> None:
    bench = Bench("bob", "cid")
    bench.now += 4 * HOUR  # The joins are causes as well.
    cause = bench.forge("bob", time=ms(bench.now - HOUR))
    bench.bring("bob", cause)
    early = bench.forge("cid", deps=(cause.head,), time=ms(bench.now - 2 * HOUR))
    bench.bring("cid", early)
    near = bench.forge("cid", deps=(cause.head,), time=ms(bench.now - HOUR - 200))
    assert near.unit.prev == early.head
    bench.bring("cid", near)
    expected = {cause.head: False, early.head: True, near.head: False}
    assert marks(bench, 1) == expected
    bench.ask(ReadRoom(3, bench.id, 0.0, live=False))
    assert marks(bench, 3) == expected


def test_who_answers_somebody_from_the_future_is_not_doubted() -> None:
    bench = Bench("bob", "cid")
    ahead = bench.forge("bob", time=ms(bench.now + MONTH))
    bench.bring("bob", ahead)
    answer = bench.forge("cid", deps=(ahead.head,))
    bench.bring("cid", answer)
    assert marks(bench, 1) == {ahead.head: True, answer.head: False}
    bench.now += HOUR
    bench.restart()
    bench.ask(ReadRoom(3, bench.id, 0.0, live=False))
    assert marks(bench, 3) == {ahead.head: True, answer.head: False}


def test_what_was_taken_back_keeps_its_mark() -> None:
    bench = Bench("bob")
    ahead = bench.forge("bob", time=ms(bench.now + MONTH))
    bench.bring("bob", ahead)
    bench.ask(Redact(bench.id, ahead.head))
    bench.ask(ReadRoom(3, bench.id, 0.0, live=False))
    assert marks(bench, 3) == {ahead.head: True}


def test_what_follows_somebody_from_the_future_comes_behind_it_and_at_once() -> None:
    """The order follows causes first: no claimed time puts an event before what its author knew."""
    bench = Bench("bob", "cid")
    first = bench.forge("bob", time=ms(bench.now))
    bench.bring("bob", first)
    ahead = bench.forge("bob", time=ms(bench.now + MONTH))
    bench.bring("bob", ahead)
    answer = bench.forge("cid", deps=(ahead.head,), time=0)
    bench.bring("cid", answer)
    assert list(marks(bench, 1)) == [first.head, ahead.head, answer.head]
    bench.ask(ReadRoom(3, bench.id, 0.0, live=False))
    assert list(marks(bench, 3)) == [first.head, ahead.head, answer.head]
    assert not any(
        isinstance(item, Inserted)
        for effect in bench.effects
        if isinstance(effect, Deliver)
        for item in effect.items
    )
    bench.ask(Unsubscribe(3))


def test_the_state_says_which_of_its_times_are_doubtful() -> None:
    bench = Bench("bob")
    bench.up("cid")
    body = body_of(Member(Membership.JOIN, None, bench.ticket()))
    key = member_key(bench.who("cid").author)
    ahead = bench.forge("cid", MEMBER, key, body, time=ms(bench.now + HOUR / 2))
    bench.bring("cid", ahead)
    bench.now += 2 * HOUR
    reply = bench.ask(ExamineState(bench.id))
    assert isinstance(reply, StateIs)
    assert [each.event.id for each in reply.entries if each.event.doubtful] == [ahead.head]
