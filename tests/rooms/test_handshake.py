"""Greetings: who is greeted with what, and again when heads have changed."""

from __future__ import annotations

from functools import partial

from tests.rooms.bench import Bench

from linnet.core.effects import CancelTimer, Send, SetTimer
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.delivery.messages import Data
from linnet.overlay.notices import NeighborUp
from linnet.rooms.commands import SendToRoom, SetMembership
from linnet.rooms.event_types import JoinRule, Membership
from linnet.rooms.handshake import AnnounceDue
from linnet.rooms.messages import AskControl, ControlPage, Greet, Refused
from linnet.trace.records import Record

NOWHERE = EventId(b"\x07" * 32)


def noticed(bench: Bench, name: str) -> list[Greet]:
    """A tracker says that somebody is a neighbour."""
    notice = NeighborUp(bench.id, bench.link(name))
    return bench.sent(
        name, Greet, bench.brought_about(lambda: bench.rooms.handle_neighbor_up(notice, bench.now))
    )


def test_whom_only_a_tracker_names_is_told_who_we_are_and_no_more() -> None:
    """Anyone may register with a tracker under any topic."""
    bench = Bench("bob")
    bench.up("eve")
    (greeting,) = noticed(bench, "eve")
    card, hints = bench.who("ann").card, ("tls://ann:1",)
    assert greeting == Greet(bench.id, card, hints, (), (), 0, False, (), None, False)


def test_once_it_has_shown_that_it_is_a_member_it_is_told_the_rest() -> None:
    bench = Bench("bob")
    bench.down("bob")
    bench.room.neighbors._book.forget(bench.link("bob"))
    bench.up("bob")
    noticed(bench, "bob")
    (greeting,) = bench.sent("bob", Greet, bench.greet("bob", answer=True))
    assert greeting.heads == bench.room.dag.heads
    assert greeting.answer
    assert not greeting.relay
    assert not bench.sent("bob", Greet, bench.greet("bob", answer=True))


def test_a_greeting_tells_how_far_we_are_and_whom_we_have_met() -> None:
    bench = Bench("bob", "cid")
    bench.say(SendToRoom(bench.id, (b"hello",)))
    greeting = bench.room.handshake.greeting(answer=True)
    assert (greeting.heads, greeting.control) == (bench.room.dag.heads, bench.room.control.heads)
    assert (greeting.events, greeting.relay, greeting.answer) == (len(bench.room.dag), False, True)
    assert {contact.peer for contact in greeting.contacts} == {bench.link("bob"), bench.link("cid")}


def test_who_was_met_as_a_member_is_greeted_as_one() -> None:
    bench = Bench("bob")
    bench.down("bob")
    bench.up("bob")
    (greeting,) = noticed(bench, "bob")
    assert greeting.heads == bench.room.dag.heads
    assert greeting.events == len(bench.room.dag)


def test_a_stranger_that_refuses_us_learns_nothing_by_it() -> None:
    bench = Bench("bob")
    bench.up("eve")
    for reason in (Reason.NOT_A_MEMBER, Reason.BANNED):
        effects = bench.hear("eve", Refused(bench.id, None, reason, "who are you"))
        assert not bench.sent("eve", Data, effects)
        assert not bench.sent("eve", AskControl, effects)


def test_a_member_that_takes_us_for_a_stranger_is_shown_our_join() -> None:
    bench = Bench("bob")
    effects = bench.hear("bob", Refused(bench.id, None, Reason.NOT_A_MEMBER, "who are you"))
    (data,) = bench.sent("bob", Data, effects)
    assert data.unit.author == bench.who("ann").author
    assert not bench.sent("bob", Data, bench.hear("bob", Refused(bench.id, None, Reason.NOT_JOINED, "left")))


def test_who_brings_its_join_is_greeted_and_who_knocks_is_told_that_it_was_heard() -> None:
    bench = Bench(rule=JoinRule.KNOCK)
    bench.up("bob")
    effects = bench.bring("bob", bench.membership("bob", "bob", Membership.KNOCK))
    (page,) = bench.sent("bob", ControlPage, effects)
    assert page.units == ()
    assert page.heads == bench.room.control.heads
    bench.up("cid")
    effects = bench.bring("cid", bench.membership("cid", "cid", Membership.JOIN, bench.ticket()))
    assert [each.answer for each in bench.sent("cid", Greet, effects)] == [False]


def test_who_is_out_and_is_greeted_as_a_member_asks_why() -> None:
    """Whoever put us out may have had no right to; a member that knows it takes us for one."""
    bench = Bench("bob")
    meeting, bob, eve = bench.room.handshake, bench.link("bob"), bench.link("eve")
    greeting = bench.greeting("bob", control=(NOWHERE,))
    steps = bench.brought_about(lambda: meeting.answer_outside(bob, greeting))
    (ask,) = bench.sent("bob", AskControl, steps)
    assert ask.card == bench.who("ann").card
    assert bob in bench.room.taking.asked
    for peer, name, heads in ((bob, "bob", bench.room.control.heads), (eve, "eve", (NOWHERE,))):
        greeting = bench.greeting(name, control=heads)
        steps = bench.brought_about(partial(meeting.answer_outside, peer, greeting))
        assert [type(step) for step in steps] == [Record, Send]  # it is refused, and asked for nothing
    assert eve not in bench.room.taking.asked


def test_who_has_left_and_is_greeted_as_a_member_is_there_once_more_to_tell() -> None:
    bench = Bench("bob", "cid")
    bench.say(SetMembership(bench.id, bench.who("ann").author, Membership.LEAVE))
    page = ControlPage(bench.id, 1, (), (), False, bench.room.control.heads, (), None)
    bench.hear("bob", page)
    assert not bench.room.is_present
    effects = bench.greet("cid")
    assert bench.room.is_present
    assert [each.answer for each in bench.sent("cid", Greet, effects)][:1] == [True]
    bench.hear("cid", page)
    assert not bench.room.is_present


def test_a_shorter_delay_replaces_a_longer_one_and_not_the_other_way_round() -> None:
    bench = Bench("bob")
    announcing, tick = bench.room.announcements, AnnounceDue(bench.id)
    assert bench.brought_about(lambda: announcing.stop()) == [CancelTimer(tick)]
    assert bench.brought_about(lambda: announcing.arm(10.0)) == [SetTimer(10.0, tick)]
    assert bench.brought_about(lambda: announcing.arm(2.0)) == [SetTimer(2.0, tick)]
    assert bench.brought_about(lambda: announcing.arm(2.0)) == []
    assert bench.brought_about(lambda: announcing.arm(10.0)) == []
    bench.brought_about(announcing.stop)
    assert bench.brought_about(lambda: announcing.arm(10.0)) == [SetTimer(10.0, tick)]


def test_those_who_may_not_know_are_told_and_the_timer_is_set_again() -> None:
    bench = Bench("bob", "cid")
    tick = AnnounceDue(bench.id)
    effects = bench.fire(tick)
    told = [name for name in ("bob", "cid") if bench.sent(name, Greet, effects)]
    behind = [
        name
        for name in ("bob", "cid")
        if bench.room.guests.by_peer[bench.who(name).peer].heads != bench.room.sync.heads
    ]
    assert told == behind == ["bob", "cid"]
    period = bench.room.config.announce_period
    assert effects.count(SetTimer(period, tick)) == 1
