"""The door of a room: what is taken from whom."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.rooms.bench import Bench

from linnet.core.effects import Blame
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.event.event import Verified
from linnet.rooms.event_types import JoinRule, Membership
from linnet.rooms.messages import Refused
from linnet.trace.records import Kind

NOWHERE = EventId(b"\x07" * 32)


def refusals(bench: Bench, name: str, *made: Verified) -> list[tuple[EventId | None, Reason]]:
    effects = bench.bring(name, *made)
    return [(each.event, each.reason) for each in bench.sent(name, Refused, effects)]


def test_a_stranger_brings_its_own_join_and_nothing_else() -> None:
    bench = Bench("bob")
    bench.up("eve")
    message, of_bob = bench.forge("eve"), bench.forge("bob")
    kick = bench.membership("eve", "bob", Membership.LEAVE)
    for each in (message, of_bob, kick):
        # Nothing is said of the event, which may come by another way.
        assert refusals(bench, "eve", each) == [(None, Reason.NOT_A_MEMBER)]
        assert not bench.room.dag.satisfies(each.head)
    bench._chains.pop("eve")
    join = bench.membership("eve", "eve", Membership.JOIN, bench.ticket())
    assert refusals(bench, "eve", join) == []
    assert bench.room.view.membership(bench.who("eve").author) is Membership.JOIN


@pytest.mark.parametrize(
    ("ticket", "reason"), [(None, Reason.NOT_INVITED), (-1000.0, Reason.INVITATION_EXPIRED)]
)
def test_a_join_that_does_not_hold_is_refused_and_leaves_nothing_behind(
    ticket: float | None, reason: Reason
) -> None:
    bench = Bench()
    bench.up("eve")
    shown = None if ticket is None else bench.ticket(lasts=ticket)
    join = bench.membership("eve", "eve", Membership.JOIN, shown)
    before = (len(bench.room.control), dict(bench.room.memory.rejected))
    assert refusals(bench, "eve", join) == [(join.head, reason)]
    assert (len(bench.room.control), dict(bench.room.memory.rejected)) == before


def test_a_join_that_builds_on_what_we_lack_may_wait_one_of_each_stranger() -> None:
    bench = Bench(rule=JoinRule.PUBLIC)
    bench.up("eve")
    key = bench.membership("eve", "eve", Membership.JOIN).events[0]
    first = bench.forge("eve", key.kind, key.tail.key, key.body, control=(NOWHERE,), height=9)
    second = bench.forge("eve", key.kind, key.tail.key, key.body, control=(NOWHERE,), height=10)
    assert refusals(bench, "eve", first) == []
    assert bench.room.intake.order.waits(first.head)
    assert refusals(bench, "eve", second) == [(second.head, Reason.QUEUE_FULL)]
    assert not bench.room.intake.order.waits(second.head)


def test_forged_events_are_blamed_on_who_brings_them() -> None:
    bench = Bench("bob")
    made = bench.forge("bob")
    forged = replace(made, unit=replace(made.unit, sig=bytes(64)))
    effects = bench.bring("bob", forged)
    assert [record.reason for record in bench.records(Kind.REJECTED, effects)] == [Reason.BAD_SIGNATURE]
    steps = bench.brought_about(
        lambda: bench.room.taking.take((forged.unit,), (), bench.link("bob"), bench.now)
    )
    assert steps[1:] == [Blame(bench.link("bob"), Reason.BAD_SIGNATURE)]
    bench.bring("bob", made)
    assert bench.shown() == [made.head]


@pytest.mark.parametrize("is_chained", [True, False])
def test_several_events_in_one_unit_or_one_of_no_chain_are_no_rooms(is_chained: bool) -> None:
    bench = Bench("bob")
    made = bench.forge("bob")
    tails = made.unit.tails * 2 if is_chained else made.unit.tails
    unit = replace(made.unit, tails=tails, seq=made.unit.seq if is_chained else None)
    effects = bench.bring("bob", replace(made, unit=unit))
    assert [record.reason for record in bench.records(Kind.REJECTED, effects)] == [Reason.MALFORMED]


def test_a_named_relay_brings_what_others_said_before_it_has_greeted() -> None:
    bench = Bench("bob")
    message = bench.forge("bob")
    bench.up("rex")
    assert refusals(bench, "rex", message) == [(None, Reason.NOT_A_MEMBER)]
    bench.name_relay("rex")
    assert refusals(bench, "rex", message) == []
    assert message.head in bench.shown()


def test_what_a_relay_says_itself_is_refused() -> None:
    bench = Bench("rex")
    bench.name_relay("rex")
    message = bench.forge("rex")
    assert refusals(bench, "rex", message) == [(message.head, Reason.RELAY_ONLY)]
    assert message.head not in bench.shown()


def test_strangers_fill_no_book_of_cards() -> None:
    bench = Bench("bob")
    bench.up("eve")
    known = len(bench.room.context.cards._cards)
    cards = [bench.who(f"nobody {number}").card for number in range(5)]
    bench.room.taking.take((), cards, bench.link("eve"), bench.now)
    assert len(bench.room.context.cards._cards) == known
    bench.room.taking.take((), cards, bench.link("bob"), bench.now)
    bench.room.out.clear()
    assert len(bench.room.context.cards._cards) == known + 5


def test_who_shows_us_a_room_is_trusted_until_its_link_ends() -> None:
    bench = Bench()
    bench.up("eve")
    taking, eve = bench.room.taking, bench.link("eve")
    taking.asked[eve] = None
    taking.heard_out[eve] = ()
    assert taking.heeds(eve)
    bench.down("eve")
    assert not taking.heeds(eve)
    assert taking.heard_out == {}
