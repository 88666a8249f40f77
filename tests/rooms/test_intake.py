"""What a member makes of events, above all of those that are not as they should be."""

from __future__ import annotations

import pytest
from tests.rooms.bench import Bench

from linnet.core.effects import Deliver
from linnet.core.ids import EventId
from linnet.core.inputs import Asked
from linnet.core.limits import LARGEST_COUNT
from linnet.core.reasons import Reason
from linnet.delivery.commands import Consumed
from linnet.delivery.messages import Data
from linnet.event.event import MESSAGE, Event, Verified
from linnet.identity.cards import issue_card
from linnet.identity.keys import SigningKey
from linnet.rooms.commands import ReadRoom, SendToRoom, SetMembership
from linnet.rooms.config import RoomsConfig
from linnet.rooms.event_types import (
    JOIN_RULES,
    MEMBER,
    POWER,
    JoinRule,
    JoinRules,
    Member,
    Membership,
    Power,
    body_of,
    member_key,
)
from linnet.rooms.messages import Refused
from linnet.rooms.room_store import FUTURE
from linnet.sim.seeded_random import SeededEntropy
from linnet.trace.records import Kind

NOWHERE = EventId(b"\x07" * 32)


def again(bench: Bench, name: str, **other: object) -> Verified:
    """Somebody who is in the room says so once more: a control event that anyone may make."""
    key = member_key(bench.who(name).author)
    return bench.forge(name, MEMBER, key, body_of(Member(Membership.JOIN)), **other)  # type: ignore[arg-type]


def alike_after_restart(bench: Bench) -> None:
    """A node that begins anew from its store knows what it knew."""
    room = bench.room
    before = (
        room.dag.heads,
        room.dag.all_heads,
        room.control.heads,
        len(room.dag),
        dict(room.intake.places.early),
    )
    bench.restart()
    room = bench.room
    assert before == (
        room.dag.heads,
        room.dag.all_heads,
        room.control.heads,
        len(room.dag),
        dict(room.intake.places.early),
    )


def test_an_event_is_accepted_handed_over_and_passed_on_once() -> None:
    bench = Bench("bob", "cid")
    made = bench.forge("bob")
    effects = bench.bring("bob", made)
    assert bench.shown() == [made.head]
    assert [data.unit for data in bench.sent("cid", type(bench.data(made)), effects)] == [made.unit]
    assert bench.sent("bob", type(bench.data(made)), effects) == []
    effects = bench.bring("cid", made)
    assert [record.kind for record in bench.records(Kind.DUPLICATE, effects)] == [Kind.DUPLICATE]
    for name in ("bob", "cid"):
        assert bench.sent(name, type(bench.data(made)), effects) == []
    assert bench.shown() == [made.head]


def test_a_control_event_that_names_a_message_as_control_head_is_rejected() -> None:
    """It is never judged by anything, so it must not come in; nor may the node fail at its next start."""
    bench = Bench("bob")
    message = bench.forge("bob")
    power = bench.forge("bob", POWER, "", body_of(Power()), control=(message.head,), deps=(message.head,))
    bench.bring("bob", message, power)
    assert not bench.room.dag.knows(power.head)
    assert not bench.room.control.knows(power.head)
    assert bench.shown() == [message.head]
    assert power.head in bench.room.memory.rejected
    alike_after_restart(bench)


def test_a_control_head_that_is_said_to_be_gone_is_waited_for() -> None:
    """Whoever says that a control event is gone must not decide what is judged without it."""
    bench = Bench("bob", "cid")
    head = again(bench, "bob")
    power = again(bench, "cid", control=(head.head,))
    bench.bring("cid", power)
    assert bench.room.intake.expire(head.head, bench.now) == []
    assert bench.room.out.take() == []
    bench.bring("bob", head)
    assert bench.room.control.knows(power.head)
    assert bench.room.dag.knows(power.head)


def test_what_was_gone_before_it_was_named_as_control_head_is_no_reason_to_judge() -> None:
    bench = Bench("bob", "cid")
    head = again(bench, "bob")
    message = bench.forge("cid", deps=(head.head,))
    bench.bring("cid", message)
    bench.brought_about(lambda: bench.room.intake.expire(head.head, bench.now))
    later = again(bench, "cid", control=(head.head,))
    said = bench.forge("cid", control=(head.head,))
    effects = bench.bring("cid", later, said)
    reasons = [record.reason for record in bench.records(Kind.DROPPED, effects)]
    assert reasons == [Reason.MISSING_DEPENDENCY]  # the message still waits for what was dropped
    assert not bench.room.dag.knows(later.head)
    assert later.head not in bench.room.memory.rejected
    bench.bring("bob", head)
    bench.bring("cid", later, said)
    assert bench.room.dag.knows(later.head)
    assert bench.room.dag.knows(said.head)
    alike_after_restart(bench)


@pytest.mark.parametrize("height", [0, 1, 99, LARGEST_COUNT])
def test_the_height_of_a_control_event_is_no_ground_to_refuse_it(height: int) -> None:
    """A relay and a newcomer cannot check it, and all have to judge alike."""
    bench = Bench("bob")
    lying = again(bench, "bob", height=height)
    bench.bring("bob", lying)
    room = bench.room
    assert room.dag.knows(lying.head)
    assert room.control.knows(lying.head)
    assert all(room.dag.height(ref) < room.dag.height(lying.head) for ref in room.dag.refs(lying.head))
    (after,) = bench.say(SendToRoom(bench.id, (b"and on",)))
    assert room.dag.knows(after)
    message = bench.forge("bob", height=None if height < LARGEST_COUNT else LARGEST_COUNT)
    bench.bring("bob", message)
    assert bench.shown()[-1] == message.head
    alike_after_restart(bench)


def test_a_message_of_a_wrong_height_is_rejected() -> None:
    bench = Bench("bob")
    high, low = bench.forge("bob", height=50), bench.forge("bob", height=1)
    effects = bench.bring("bob", high, low)
    assert bench.shown() == []
    refused = bench.sent("bob", Refused, effects)
    assert [(each.event, each.reason) for each in refused] == [
        (high.head, Reason.MALFORMED),
        (low.head, Reason.MALFORMED),
    ]


def test_what_counts_and_has_no_place_yet_can_be_built_on() -> None:
    """A control event is judged before what it depends on has come; what we say then names it."""
    bench = Bench("bob", "cid")
    message = bench.forge("cid")
    first = again(bench, "bob")
    second = again(bench, "bob", control=(first.head,), deps=(message.head,))
    bench.bring("bob", second)
    assert not bench.room.control.knows(second.head)
    bench.bring("bob", first)
    room = bench.room
    assert room.control.knows(second.head)
    assert not room.dag.knows(second.head)
    (ours,) = bench.say(SendToRoom(bench.id, (b"hello",)))
    # It names the other as a control head, and is not held up by what that lacks.
    assert room.dag.knows(ours)
    assert ours in bench.shown()
    alike_after_restart(bench)
    bench.up("cid")
    bench.greet("cid")
    bench.bring("cid", message)
    room = bench.room
    assert room.dag.knows(second.head)
    assert room.dag.knows(ours)
    assert room.intake.places.early == {}
    assert room.author.prev == ours


def test_it_is_passed_on_when_it_counts_and_not_again_when_it_has_its_place() -> None:
    bench = Bench("bob", "cid")
    message = bench.forge("cid")
    first = again(bench, "bob")
    second = again(bench, "bob", control=(first.head,), deps=(message.head,))
    data = type(bench.data(first))
    effects = bench.bring("bob", second, first)
    assert [each.unit for each in bench.sent("cid", data, effects)] == [first.unit, second.unit]
    effects = bench.bring("cid", message)
    assert bench.sent("cid", data, effects) == []
    assert [each.unit for each in bench.sent("bob", data, effects)] == [message.unit]


@pytest.mark.parametrize("count", [3000])
def test_a_long_chain_that_was_waited_for_takes_no_recursion(count: int) -> None:
    """Backwards, so that all wait for the first; all are refused with it, or all accepted."""
    bench = Bench("bob")
    chain = [bench.forge("bob", POWER, "", body_of(Power()))]
    for _ in range(count):
        chain.append(
            bench.forge("bob", POWER, "", body_of(Power()), control=(chain[-1].head,), deps=(chain[-1].head,))
        )
    bench.bring("bob", *reversed(chain))
    assert all(each.head in bench.room.memory.rejected for each in chain)
    assert len(bench.room.intake.order) == 0


def test_what_the_room_to_wait_in_let_go_counts_for_nothing() -> None:
    """Its control head may come later: then it would count, and never be in the log."""
    bench = Bench("bob", "cid", config=RoomsConfig(waiting_events=2))
    head, gap = again(bench, "bob"), bench.forge("bob")
    let_go = again(bench, "cid", control=(head.head,), deps=(NOWHERE,), height=9)
    needed = bench.forge("bob", deps=(NOWHERE,), height=8)
    last = bench.forge("bob", deps=(needed.head,))
    bench.bring("cid", let_go)
    bench.bring("bob", last)
    assert [bench.room.intake.order.waits(each.head) for each in (let_go, last)] == [True, True]
    effects = bench.bring("bob", needed)
    assert Reason.QUEUE_FULL in [record.reason for record in bench.records(Kind.DROPPED, effects)]
    bench.bring("bob", head, gap)
    gone = [each for each in (let_go, last) if not bench.room.intake.order.waits(each.head)]
    assert gone
    assert not any(bench.room.control.knows(each.head) for each in gone)
    alike_after_restart(bench)


def test_the_old_word_of_who_is_banned_is_kept_and_not_shown_and_only_so_often() -> None:
    bench = Bench("bob", "cid", config=RoomsConfig(flood_soft=3))
    deps, control = bench.room.dag.heads, bench.room.control.heads
    bench.say(SetMembership(bench.id, bench.who("bob").author, Membership.BAN))
    told = []
    for _ in range(6):
        told.append(bench.forge("bob", deps=deps, control=control))
        bench.bring("cid", told[-1])
    room = bench.room
    assert [room.dag.knows(each.head) for each in told] == [True] * 3 + [False] * 3
    assert not any(each.head in bench.shown() for each in told)
    assert not any(each.head in room.dag.heads for each in told)
    assert (room.intake.soft_failed, room.intake.rejected) == (3, 0)
    alike_after_restart(bench)
    bench.up("cid")
    bench.greet("cid")
    effects = bench.bring("cid", told[3])
    assert [record.reason for record in bench.records(Kind.DROPPED, effects)] == [Reason.FLOODING]
    assert not bench.room.dag.knows(told[3].head)


def test_what_somebody_builds_on_is_kept_however_much_there_is_of_it() -> None:
    bench = Bench("bob", "cid", config=RoomsConfig(flood_soft=1))
    deps, control = bench.room.dag.heads, bench.room.control.heads
    bench.say(SetMembership(bench.id, bench.who("bob").author, Membership.BAN))
    first, second = (
        bench.forge("bob", deps=deps, control=control),
        bench.forge("bob", deps=deps, control=control),
    )
    reply = bench.forge("cid", deps=(second.head,))
    bench.bring("cid", first, reply)
    assert not bench.room.dag.knows(reply.head)
    bench.bring("cid", second)
    assert bench.shown()[-1] == reply.head


def test_soft_failed_control_events_count_before_they_have_their_place() -> None:
    """Or who is banned could make as many as wait for something that never comes."""
    bench = Bench("bob", "cid", config=RoomsConfig(flood_soft=3))
    control = bench.room.control.heads
    bench.say(SetMembership(bench.id, bench.who("bob").author, Membership.BAN))
    before = len(bench.room.control)
    told = [again(bench, "bob", deps=(NOWHERE,), control=control, height=9) for _ in range(6)]
    bench.bring("cid", *told)
    assert len(bench.room.control) == before + 3


def test_a_room_has_so_many_control_events() -> None:
    bench = Bench("bob", config=RoomsConfig(max_control=8))
    told = [again(bench, "bob") for _ in range(6)]
    effects = bench.bring("bob", *told)
    assert len(bench.room.control) == 8
    assert Reason.QUOTA in [record.reason for record in bench.records(Kind.DROPPED, effects)]
    alike_after_restart(bench)


def test_events_of_nowhere_wait_and_are_bounded() -> None:
    bench = Bench("bob", config=RoomsConfig(waiting_events=4))
    told = [bench.forge("bob", deps=(NOWHERE,), height=5 + number) for number in range(8)]
    effects = bench.bring("bob", *told)
    assert len(bench.room.intake.order) == 4
    assert [record.reason for record in bench.records(Kind.DROPPED, effects)] == [Reason.QUEUE_FULL] * 4


def test_a_second_create_event_is_blamed() -> None:
    bench = Bench("bob")
    create = bench.forge("bob", "create", "", b"")
    effects = bench.bring("bob", create)
    assert [record.reason for record in bench.records(Kind.REJECTED, effects)] == [Reason.NOT_ALLOWED]
    assert not bench.room.dag.knows(create.head)


def test_of_what_is_gone_only_dependents_are_freed() -> None:
    bench = Bench("bob")
    gone = bench.forge("bob")
    after = bench.forge("bob", deps=(gone.head,))
    assert bench.room.intake.expire(gone.head, bench.now) == []  # nobody waits for it
    assert bench.room.out.take() == []
    bench.bring("bob", after)
    placed = bench.room.intake.expire(gone.head, bench.now)
    effects = bench.room.out.take()
    assert [each.arrival.event.id for each in placed] == [after.head]
    assert [record.kind for record in effects if hasattr(record, "kind")] == [Kind.EXPIRED]
    bench.effects.clear()
    bench.bring("bob", gone)
    assert bench.room.dag.knows(gone.head)
    assert bench.shown() == []  # it is history now
    alike_after_restart(bench)


def test_an_event_ahead_of_our_clock_is_shown_and_passed_on_at_once() -> None:
    """Its author's clock is wrong, or ours is: neither is a reason to keep it from anybody."""
    bench = Bench("bob", "cid")
    ahead = bench.forge("bob", time=int((bench.now + 3 * 3600) * 1000))
    effects = bench.bring("bob", ahead)
    assert bench.shown() == [ahead.head]
    assert bench.room.dag.heads == (ahead.head,)
    assert not bench.sent("bob", Refused, effects)
    assert bench.sent("cid", Data, effects)
    (record,) = bench.records(Kind.DELIVERED, effects)
    assert record.note == "message: its time is ahead of our clock"
    alike_after_restart(bench)


def test_history_before_the_card_was_renewed_is_good() -> None:
    bench = Bench("bob")
    who = bench.who("bob")
    old = bench.forge("bob")
    person = SigningKey.generate(SeededEntropy(1, "identity/bob"))
    later = int(bench.now) + 200 * 86_400
    renewed = issue_card(person, who.device.public, later, later + 400 * 86_400, "bob")
    assert renewed.person == who.author
    bench.hear("bob", Data(old.unit, 1, 0, 0, renewed))
    assert bench.shown() == [old.head]


def test_what_is_no_valid_body_of_its_kind_is_rejected() -> None:
    bench = Bench("bob")
    told = [
        bench.forge("bob", POWER, "", b"nonsense"),
        bench.forge("bob", MEMBER, "not a person", body_of(Member(Membership.JOIN))),
        bench.forge("bob", JOIN_RULES, None, body_of(JoinRules(JoinRule.PUBLIC))),
        bench.forge("bob", "message", "a key", b"x"),
    ]
    bench.bring("bob", *told)
    assert [each.head in bench.room.memory.rejected for each in told] == [True] * 4
    alike_after_restart(bench)


def test_what_had_no_room_is_read_from_relays_once_more_when_there_is() -> None:
    """A relay's cursor has passed it, so it would never come again."""
    bench = Bench("bob", config=RoomsConfig(waiting_events=2))
    missing = bench.forge("bob")
    late = [bench.forge("bob", deps=(missing.head,)) for _ in range(4)]
    bench.bring("bob", *late)
    assert bench.room.memory.overflowed
    bench.bring("bob", missing)
    assert not bench.room.memory.overflowed
    bench.bring("bob", *late)
    assert [each.head for each in late] == bench.shown()[-4:]


def test_a_control_event_counts_though_there_is_no_room_to_wait_in() -> None:
    """Or whoever fills that room with events of nowhere could keep a ban out."""
    bench = Bench("bob", "cid", config=RoomsConfig(waiting_events=2))
    missing = bench.forge("cid")
    junk = [bench.forge("bob", deps=(NOWHERE,), height=9 + number) for number in range(2)]
    bench.bring("bob", *junk)
    word = again(bench, "cid", deps=(missing.head,))
    effects = bench.bring("cid", word)
    assert [record.reason for record in bench.records(Kind.DROPPED, effects)] == [Reason.QUEUE_FULL]
    assert bench.room.control.knows(word.head)
    assert not bench.room.dag.knows(word.head)
    alike_after_restart(bench)
    assert bench.room.control.knows(word.head)
    bench.up("cid")
    bench.greet("cid")
    bench.bring("cid", missing, word)
    assert bench.room.dag.knows(word.head)
    assert bench.room.intake.places.early == {}


def hide(bench: Bench, event: EventId) -> None:
    """Flag an event of the log as version 0.1.0 did while its time was ahead of the clock."""
    position = next(at for at, entry in bench.store.log.read(bench.id, 0, 1000) if entry.head == event)
    bench.store.cells.put(f"room.flag/{bench.id.hex()}", event, FUTURE + position.to_bytes(8, "big"))
    bench.store.commit(lambda: None)


def test_what_an_earlier_version_hid_for_its_time_is_shown_to_durable_readers_once() -> None:
    bench = Bench("bob")
    hidden = bench.forge("bob", time=int((bench.now + 3 * 3600) * 1000))
    bench.bring("bob", hidden)
    hide(bench, hidden.head)

    def handed(subscription: int) -> list[EventId]:
        delivered = [each for each in bench.effects if isinstance(each, Deliver)]
        items = [item for each in delivered if each.subscription == subscription for item in each.items]
        return [item.id for item in items if isinstance(item, Event) and item.kind == MESSAGE]

    for life, expected in enumerate(([hidden.head], [hidden.head], [])):
        bench.restart()
        bench.ask(ReadRoom(2, bench.id, 0.0, "app"))
        assert handed(2) == expected, life
        if life == 1:
            bench.do(Asked(901, Consumed(2, 10)))


def test_a_clock_that_is_behind_sheds_nothing_of_those_who_speak_much() -> None:
    bench = Bench("bob", config=RoomsConfig(flood_soft=2))
    right = bench.now
    bench.now = right - 5 * 3600
    said = [bench.forge("bob", time=int(right * 1000) + number) for number in range(5)]
    for each in said:
        bench.bring("bob", each)
    assert all(bench.room.dag.knows(each.head) for each in said)
    bench.now = right
    bench.restart()
    bench.ask(ReadRoom(2, bench.id, 0.0, None))
    assert [event for event in bench.shown() if event in [each.head for each in said]] == [
        each.head for each in said
    ]
