"""Who may ask what about a room."""

from __future__ import annotations

import pytest
from tests.rooms.bench import Bench

from linnet.core.effects import AfterCommit, Send
from linnet.core.ids import Contact
from linnet.core.reasons import Reason
from linnet.delivery.causal_messages import Beyond, Further, Given, Want
from linnet.identity.text import Sort, to_text
from linnet.rooms.commands import SendToRoom, SetMembership
from linnet.rooms.content import RELAY, Membership, Relay, body_of
from linnet.rooms.messages import AskControl, ControlPage, Refused
from linnet.trace.records import Kind


def scene() -> Bench:
    """Ann's room: bob is a member, rex a relay, eve nobody."""
    bench = Bench()
    bench.join("bob")
    rex = bench.who("rex")
    bench.govern(RELAY, to_text(Sort.DEVICE, rex.peer), body_of(Relay(True, rex.author, ("tls://rex:1",))))
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
    (answer,) = bench.brought_about(lambda: bench.room.answering.handle_want(bench.link("bob"), want))
    assert isinstance(answer, AfterCommit)
    assert isinstance(answer.effects[0], Send)
