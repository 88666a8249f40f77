"""The door of a room: what is let in of members, of strangers, and of those whom we turned to."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.rooms.bench import Bench

from linnet.core.effects import Blame, Send
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.event.event import Unverified, Verified
from linnet.identity.cards import Card
from linnet.identity.text import Sort, to_text
from linnet.rooms.commands import SetMembership
from linnet.rooms.content import RELAY, JoinRule, Membership, Relay, body_of
from linnet.rooms.effects import RoomEffect
from linnet.rooms.messages import Refused
from linnet.rooms.taking import Taking
from linnet.trace.records import Kind, Record

NOWHERE = EventId(b"\x07" * 32)


def door(bench: Bench) -> Taking:
    return bench.room.taking


def take(bench: Bench, source: str, *units: Unverified, cards: tuple[Card, ...] = ()) -> list[RoomEffect]:
    """What comes of units that a peer brings, once the room has settled."""
    steps = door(bench).take(units, cards, bench.link(source), bench.now, 2)
    return bench.room.settle(steps, bench.now)


def blamed(effects: list[RoomEffect]) -> list[Reason]:
    return [each.reason for each in effects if isinstance(each, Blame)]


def refusals(bench: Bench, name: str, effects: list[RoomEffect]) -> list[tuple[EventId | None, Reason]]:
    to = bench.link(name)
    sent = [each.message for each in effects if isinstance(each, Send) and each.peer == to]
    return [(each.event, each.reason) for each in sent if isinstance(each, Refused)]


def recorded(effects: list[RoomEffect], kind: Kind) -> list[Reason | None]:
    return [each.reason for each in effects if isinstance(each, Record) and each.kind is kind]


def own_join(bench: Bench, name: str, lasts: float = 3600.0) -> Verified:
    return bench.membership(name, name, Membership.JOIN, bench.ticket(lasts=lasts))


# Members.


def test_an_event_of_a_member_is_received_and_has_its_place() -> None:
    bench = Bench()
    bench.join("bob")
    made = bench.forge("bob")
    event = made.events[0]
    effects = take(bench, "bob", made.unit)
    assert effects[0] == Record(
        Kind.RECEIVED,
        bench.id,
        event.id,
        event.device,
        event.seq,
        peer=bench.link("bob"),
        hops=2,
        note="message",
    )
    assert bench.room.dag.knows(event.id)
    assert blamed(effects) == []


@pytest.mark.parametrize("bringer", ["bob", "cid", "eve"])
def test_what_is_known_is_counted_and_nothing_else(bringer: str) -> None:
    bench = Bench()
    bench.join("bob", "cid")
    made = bench.forge("bob")
    bench.bring("bob", made)
    event = made.events[0]
    place = (event.id, event.device, event.seq)
    assert take(bench, bringer, made.unit) == [
        Record(Kind.DUPLICATE, bench.id, *place, peer=bench.link(bringer), hops=2)
    ]


def test_members_bring_what_others_have_said_with_their_cards() -> None:
    bench = Bench()
    bench.join("bob")
    join = own_join(bench, "cid")
    effects = take(bench, "bob", join.unit, cards=(bench.who("cid").card,))
    assert blamed(effects) == []
    assert bench.room.view.membership(bench.who("cid").author) is Membership.JOIN


def test_a_card_that_is_false_is_the_bringers_fault_and_keeps_nothing_else_out() -> None:
    bench = Bench()
    bench.join("bob")
    false = replace(bench.who("eve").card, label="mallory")
    made = bench.forge("bob")
    effects = take(bench, "bob", made.unit, cards=(false,))
    assert effects[:2] == [
        Record(Kind.REJECTED, bench.id, peer=bench.link("bob"), reason=Reason.BAD_SIGNATURE, note="card"),
        Blame(bench.link("bob"), Reason.BAD_SIGNATURE),
    ]
    assert bench.room.context.cards.find(false.person, false.device) is None
    assert bench.room.dag.knows(made.head)


def test_a_forged_event_is_no_word_of_its_author_and_is_not_remembered() -> None:
    bench = Bench()
    bench.join("bob", "cid")
    made = bench.forge("cid")
    effects = take(bench, "bob", replace(made.unit, sig=bytes(64)))
    assert recorded(effects, Kind.REJECTED) == [Reason.BAD_SIGNATURE]
    assert blamed(effects) == [Reason.BAD_SIGNATURE]
    assert refusals(bench, "bob", effects) == []
    take(bench, "cid", made.unit)
    assert bench.room.dag.knows(made.head)


# Strangers.


def test_a_stranger_speaks_for_itself_alone() -> None:
    bench = Bench()
    bench.join("bob")
    bench.up("eve")
    made = bench.forge("bob")
    cards = (bench.who("eve").card, bench.who("dan").card)
    effects = take(bench, "eve", made.unit, cards=cards)
    assert refusals(bench, "eve", effects) == [(None, Reason.NOT_A_MEMBER)]  # no word on the event
    assert blamed(effects) == [Reason.NOT_A_MEMBER]
    assert recorded(effects, Kind.RECEIVED) == []
    book = bench.room.context.cards
    assert book.find(bench.who("eve").author, bench.who("eve").card.device) is not None
    assert book.find(bench.who("dan").author, bench.who("dan").card.device) is None
    take(bench, "bob", made.unit)
    assert bench.room.dag.knows(made.head)


def test_a_stranger_brings_its_own_membership_and_nothing_else() -> None:
    bench = Bench()
    bench.up("eve")
    card = bench.who("eve").card
    effects = take(bench, "eve", bench.forge("eve").unit, cards=(card,))
    assert refusals(bench, "eve", effects) == [(None, Reason.NOT_A_MEMBER)]
    effects = take(bench, "eve", bench.membership("eve", "dan", Membership.JOIN, bench.ticket()).unit)
    assert refusals(bench, "eve", effects) == [(None, Reason.NOT_A_MEMBER)]
    join = own_join(bench, "eve")
    assert refusals(bench, "eve", take(bench, "eve", join.unit)) == []
    assert bench.room.view.membership(bench.who("eve").author) is Membership.JOIN


def test_who_is_banned_is_told_so() -> None:
    bench = Bench()
    bench.join("bob")
    bench.say(SetMembership(bench.id, bench.who("bob").author, Membership.BAN))
    effects = take(bench, "bob", bench.forge("bob").unit)
    assert refusals(bench, "bob", effects) == [(None, Reason.BANNED)]


def test_a_join_that_is_not_allowed_right_now_is_refused_and_leaves_nothing() -> None:
    bench = Bench()
    bench.up("eve")
    before = len(bench.room.dag), len(bench.room.control)
    uninvited = bench.membership("eve", "eve", Membership.JOIN)
    effects = take(bench, "eve", uninvited.unit, cards=(bench.who("eve").card,))
    assert refusals(bench, "eve", effects) == [(uninvited.head, Reason.NOT_INVITED)]
    assert blamed(effects) == [Reason.NOT_INVITED]
    assert (len(bench.room.dag), len(bench.room.control)) == before
    assert not bench.room.intake.knows(uninvited.head)


def test_at_the_door_an_invitation_ends_by_our_clock() -> None:
    """The time of the join is what the joiner says; whoever takes it from its own link looks at a clock."""
    bench = Bench()
    bench.up("eve")
    join = own_join(bench, "eve", lasts=60.0)
    bench.now += 60 + 301
    effects = take(bench, "eve", join.unit, cards=(bench.who("eve").card,))
    assert refusals(bench, "eve", effects) == [(join.head, Reason.INVITATION_EXPIRED)]
    bench.join("bob")
    take(bench, "bob", join.unit)  # in the room it counts by its own time
    assert bench.room.view.membership(bench.who("eve").author) is Membership.JOIN


def stray(bench: Bench, name: str) -> Verified:
    """A knock of somebody that builds on control events that nobody here knows."""
    made = bench.membership(name, name, Membership.KNOCK)
    tail = made.events[0].tail
    return bench.forge(name, tail.kind, tail.key, tail.body, control=(NOWHERE,), height=99)


def test_what_cannot_be_judged_yet_may_wait_one_of_each() -> None:
    bench = Bench(rule=JoinRule.KNOCK)
    bench.up("eve")
    first, second = stray(bench, "eve"), stray(bench, "eve")
    effects = take(bench, "eve", first.unit, second.unit, cards=(bench.who("eve").card,))
    assert bench.room.intake.order.waits(first.head)
    assert refusals(bench, "eve", effects) == [(second.head, Reason.QUEUE_FULL)]
    assert not bench.room.intake.order.waits(second.head)


def test_only_so_many_strangers_may_have_something_wait() -> None:
    bench = Bench(rule=JoinRule.KNOCK)
    outcomes = []
    for number in range(65):
        name = f"stranger {number}"
        effects = take(bench, name, stray(bench, name).unit, cards=(bench.who(name).card,))
        outcomes.append([reason for _, reason in refusals(bench, name, effects)])
    assert outcomes == [[]] * 64 + [[Reason.QUEUE_FULL]]


# Those whom we turned to.


def test_whoever_shows_us_the_room_is_heeded_until_its_link_is_gone() -> None:
    bench = Bench()
    bench.join("bob")
    eve = bench.link("eve")
    assert not door(bench).heeds(eve)
    door(bench).asked[eve] = None
    assert door(bench).heeds(eve)
    made = bench.forge("bob")
    take(bench, "eve", made.unit)
    assert bench.room.dag.knows(made.head)
    door(bench).down(eve)
    assert not door(bench).heeds(eve)


def test_a_relay_is_heeded() -> None:
    bench = Bench()
    rex = bench.who("rex")
    bench.govern(RELAY, to_text(Sort.DEVICE, rex.peer), body_of(Relay(True, rex.author, ())))
    assert door(bench).heeds(rex.peer)
    bench.govern(RELAY, to_text(Sort.DEVICE, rex.peer), body_of(Relay(False, rex.author, ())))
    assert not door(bench).heeds(rex.peer)


def test_with_whom_we_differ_is_heard_out_about_control_and_nothing_else() -> None:
    bench = Bench()
    bench.join("bob")
    eve = bench.link("eve")
    said, join = bench.forge("bob"), own_join(bench, "dan")
    door(bench).heard_out[eve] = None
    effects = take(bench, "eve", said.unit, join.unit, cards=(bench.who("dan").card,))
    assert refusals(bench, "eve", effects) == [(None, Reason.NOT_A_MEMBER)]
    assert not bench.room.dag.knows(said.head)
    assert bench.room.view.membership(bench.who("dan").author) is Membership.JOIN
    door(bench).down(eve)
    again = own_join(bench, "fay")
    effects = take(bench, "eve", again.unit, cards=(bench.who("fay").card,))
    assert refusals(bench, "eve", effects) == [(None, Reason.NOT_A_MEMBER)]


def test_what_nobody_asked_for_is_recorded_and_not_answered() -> None:
    bench = Bench()
    eve = bench.link("eve")
    assert door(bench).unasked(eve, "Given") == [
        Record(Kind.REJECTED, bench.id, peer=eve, reason=Reason.NOT_A_MEMBER, note="Given")
    ]


def test_a_refusal_is_short_enough_for_its_message() -> None:
    bench = Bench()
    record, send = door(bench).refuse(bench.link("eve"), None, Reason.BANNED, "x" * 1000)
    assert isinstance(record, Record)
    assert record.note == "x" * 100
    assert send == Send(bench.link("eve"), Refused(bench.id, None, Reason.BANNED, "x" * 200))
