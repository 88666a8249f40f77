"""Pages of events that one member gives another: what is asked for, in order, within bounds, and to whom."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.rooms.bench import Bench

from linnet.core.effects import AfterCommit, Send
from linnet.core.ids import Contact, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.delivery.messages import Beyond, Further, Given, Want
from linnet.event.signing import unit_head
from linnet.rooms.backfill import BackfillServer
from linnet.rooms.commands import SendToRoom, SetMembership
from linnet.rooms.config import RoomsConfig
from linnet.rooms.event_types import Membership
from linnet.rooms.messages import AskControl, ControlPage, Refused
from linnet.trace.records import Kind

NOWHERE = EventId(b"\x07" * 32)


def filled(events: int = 30, **config: int) -> Bench:
    bench = Bench("bob", config=replace(RoomsConfig(), **config))
    bench.say(SendToRoom(bench.id, tuple(str(number).encode() for number in range(events))))
    return bench


def pages_of(bench: Bench) -> BackfillServer:
    return bench.room.backfill_server


def test_events_by_id_with_the_cards_that_they_need() -> None:
    bench = filled()
    ids = tuple(bench.room.dag.ids_in_order())[:5]
    given = pages_of(bench).build_given(Want(bench.id, 3, (*ids, NOWHERE)), control_only=False)
    assert [unit_head(unit) for unit in given.units] == list(ids)
    assert (given.request, given.unknown, given.reason) == (3, (NOWHERE,), Reason.NOT_HELD)
    authors = {unit.author for unit in given.units}
    assert {card.person for card in given.cards} == authors


def test_a_page_has_so_many_events_and_bytes_and_says_that_there_are_more() -> None:
    bench = filled(page_events=8)
    ids = tuple(bench.room.dag.ids_in_order())[:20]
    given = pages_of(bench).build_given(Want(bench.id, 1, ids), control_only=False)
    assert (len(given.units), given.unknown, given.reason) == (8, (), Reason.TOO_LARGE)
    small = filled(page_bytes=1500)
    given = pages_of(small).build_given(Want(small.id, 1, tuple(small.room.dag.ids_in_order())), False)
    assert 1 <= len(given.units) < 8
    tiny = filled(page_bytes=1)
    given = pages_of(tiny).build_given(Want(tiny.id, 1, tuple(tiny.room.dag.ids_in_order())), False)
    assert len(given.units) == 1  # one always goes, or nothing ever would


def test_a_walk_brings_everything_in_causal_order_page_by_page() -> None:
    bench = filled(page_events=7)
    bob = bench.link("bob")
    seen: list[EventId] = []
    heads: tuple[EventId, ...] = ()
    while True:
        page: Further = pages_of(bench).build_further(bob, Beyond(bench.id, 1, heads))
        seen += [unit_head(unit) for unit in page.units]
        heads = tuple(seen[-1:])
        if not page.more:
            break
    assert seen == list(bench.room.dag.ids_in_order())
    again = pages_of(bench).build_further(bob, Beyond(bench.id, 2, bench.room.dag.all_heads))
    assert (again.units, again.more, again.unknown) == ((), False, ())
    assert pages_of(bench).build_further(bob, Beyond(bench.id, 3, (NOWHERE,))).unknown == (NOWHERE,)
    pages_of(bench).handle_link_down(bob)


def test_control_events_beyond_some_heads() -> None:
    bench = filled()
    serving, control = pages_of(bench), bench.room.control
    everything = serving.build_control_page(AskControl(bench.id, 1, (), None), ())
    assert len(everything.units) == len(control)
    assert (everything.heads, everything.more, everything.reason) == (control.heads, False, None)
    nothing = serving.build_control_page(AskControl(bench.id, 1, control.heads, None), ())
    assert nothing.units == ()
    create = EventId(bench.id)
    beyond = serving.build_control_page(AskControl(bench.id, 1, (create, NOWHERE), None), ())
    assert len(beyond.units) == len(control) - 1
    refused = serving.build_refusal(AskControl(bench.id, 9, (), None), Reason.BANNED)
    assert refused == ControlPage(bench.id, 9, (), (), False, (), (), Reason.BANNED)


def test_a_page_names_no_more_relays_than_a_message_holds() -> None:
    bench = filled()
    relays = tuple(Contact(PeerId(bytes([number]) * 32), ()) for number in range(70))
    page = pages_of(bench).build_control_page(AskControl(bench.id, 1, (), None), relays)
    assert page.relays == relays[:64]


def scene() -> Bench:
    """Ann's room: bob is a member, rex a relay, eve nobody."""
    bench = Bench("bob")
    bench.name_relay("rex", "tls://rex:1")
    bench.up("rex")
    bench.greet("rex")
    bench.up("eve")
    bench.say(SendToRoom(bench.id, (b"secret",)))
    bench.effects.clear()
    return bench


@pytest.mark.parametrize(("who", "events"), [("bob", True), ("rex", False), ("eve", None)])
def test_members_are_given_everything_relays_control_events_others_nothing(
    who: str, events: bool | None
) -> None:
    bench = scene()
    ids = tuple(bench.room.dag.ids_in_order())
    effects = bench.hear(who, Want(bench.id, 1, ids))
    given = bench.sent(who, Given, effects)
    if events is None:
        assert given == []
        assert [each.reason for each in bench.sent(who, Refused, effects)] == [Reason.NOT_A_MEMBER]
    else:
        assert len(given[0].units) == (len(ids) if events else len(bench.room.control))


@pytest.mark.parametrize(("who", "answered"), [("bob", True), ("rex", False), ("eve", False)])
def test_only_members_walk(who: str, answered: bool) -> None:
    bench = scene()
    effects = bench.hear(who, Beyond(bench.id, 1, ()))
    assert len(bench.sent(who, Further, effects)) == answered
    assert len(bench.sent(who, Refused, effects)) == (not answered)


@pytest.mark.parametrize("who", ["bob", "rex"])
def test_members_and_relays_are_shown_the_control_dag_and_where_relays_are(who: str) -> None:
    bench = scene()
    (page,) = bench.sent(who, ControlPage, bench.hear(who, AskControl(bench.id, 8, (), None)))
    assert (page.request, len(page.units), page.reason) == (8, len(bench.room.control), None)
    assert page.relays == (Contact(bench.link("rex"), ("tls://rex:1",)),)


def test_others_are_told_why_not_with_a_record() -> None:
    bench = scene()
    ask = AskControl(bench.id, 8, (), None, bench.who("eve").card)
    effects = bench.hear("eve", ask)
    assert bench.sent("eve", ControlPage, effects) == [
        ControlPage(bench.id, 8, (), (), False, (), (), Reason.NOT_INVITED)
    ]
    assert [record.reason for record in bench.records(Kind.REJECTED, effects)] == [Reason.NOT_INVITED]


def test_who_is_banned_sees_what_put_it_out_and_not_what_came_after() -> None:
    bench = scene()
    (ban,) = bench.say(SetMembership(bench.id, bench.who("bob").author, Membership.BAN))
    bench.say(SetMembership(bench.id, bench.who("dan").author, Membership.INVITE))
    ask = AskControl(bench.id, 8, (), bench.ticket(), bench.who("bob").card)
    (page,) = bench.sent("bob", ControlPage, bench.hear("bob", ask))
    assert (page.heads, page.relays) == ((ban,), ())
    assert len(page.units) == len(bench.room.control) - 1


def test_an_answer_follows_the_commit() -> None:
    """It may tell of events that are just written."""
    bench = scene()
    want = Want(bench.id, 1, ())
    (answer,) = bench.brought_about(lambda: bench.room.backfill_server.handle_want(bench.link("bob"), want))
    assert isinstance(answer, AfterCommit)
    assert isinstance(answer.effects[0], Send)


def test_a_card_goes_with_a_question_only_to_a_peer_that_may_take_us_for_an_outsider() -> None:
    """Members have it from our greeting, and questions for the pages of a long history are many."""
    card = filled().who("ann").card
    for who, shows, sends_card in (("bob", None, False), ("bob", "asked", True), ("eve", "heard out", True)):
        bench = filled()
        bench.up("eve")
        told = bench.room.control.heads
        if shows == "asked":
            bench.room.taking.asked[bench.link(who)] = None
        elif shows == "heard out":
            bench.room.taking.heard_out[bench.link(who)] = told
        page = pages_of(bench).build_control_page(AskControl(bench.id, 1, (), None), ())
        effects = bench.hear(who, replace(page, more=True))
        (ask,) = bench.sent(who, AskControl, effects)
        assert ask.card == (card if sends_card else None), (who, shows)
        assert set(ask.heads) == set(told)
        assert not bench.sent(who, AskControl, bench.hear(who, page)), "it has no more"


def test_an_outsider_is_shown_no_more_of_our_heads_than_before_or_than_it_has_shown() -> None:
    for who in ("bob", "eve"):
        bench = filled()
        bench.up("eve")
        if who == "eve":
            bench.room.taking.heard_out[bench.link(who)] = ()
        page = pages_of(bench).build_control_page(AskControl(bench.id, 1, (), None), ())
        effects = bench.hear(who, replace(page, units=page.units[:2], more=True))
        (ask,) = bench.sent(who, AskControl, effects)
        shown = unit_head(page.units[1])
        assert ask.heads == ((shown,) if who == "eve" else (shown, *bench.room.control.heads))
