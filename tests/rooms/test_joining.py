"""Joining a room: who is asked, whose pages are taken, and who lets whom in."""

from __future__ import annotations

from tests.driven import Driven
from tests.rooms.bench import Bench
from tests.rooms.circle import Circle

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.machine.commands import Declined
from linnet.rooms.commands import JoinRoom, RoomMade, SetMembership, SetRule
from linnet.rooms.event_types import JoinRule, Membership
from linnet.rooms.join import Join, JoinEndDue, JoinRepeatDue
from linnet.rooms.messages import AskControl, ControlPage

ROOM = TopicId(b"r" * 32)


P, Q, STRANGER = (PeerId(bytes([number]) * 32) for number in (1, 2, 3))


CARD = Bench().who("ann").card


JOIN = EventId(b"j" * 32)


PURPOSE = f"join/{ROOM.hex()}"


PATIENCE, AGAIN = JoinEndDue(ROOM), JoinRepeatDue(ROOM)


def attempt() -> Driven:
    contacts = (Contact(P, ("tls://p:1",)), Contact(Q, ()))
    return Driven(lambda out: Join(7, JoinRoom(ROOM, None, contacts), contacts, CARD, out))


def page(reason: Reason | None = None, heads: tuple[EventId, ...] = ()) -> ControlPage:
    return ControlPage(ROOM, 1, (), (), False, heads, (), reason)


def asks(request: int, peer: PeerId, *heads: EventId) -> list[object]:
    return [Send(peer, AskControl(ROOM, request, heads, None, CARD)), SetTimer(3.0, AGAIN)]


def test_everyone_is_turned_to_at_once_and_asked_when_there() -> None:
    joining = attempt()
    effects = joining.begin({Q: None}, 20.0)
    assert effects == [
        Hold(P, ("tls://p:1",), PURPOSE),
        Hold(Q, (), PURPOSE),
        *asks(1, Q),
        SetTimer(20.0, PATIENCE),
    ]
    assert joining.handle_link_up(P) == asks(2, P)
    assert joining.handle_link_up(STRANGER) == []


def test_the_first_that_shows_the_room_is_listened_to() -> None:
    joining = attempt()
    assert not joining.wants(STRANGER, page())
    assert not joining.wants(P, page(Reason.NOT_INVITED))
    assert joining.last_reason is Reason.NOT_INVITED
    assert joining.wants(Q, page())
    assert not joining.wants(P, page())
    assert joining.ask_page(Q, (JOIN,)) == asks(1, Q, JOIN)


def test_if_it_goes_away_another_is() -> None:
    joining = attempt()
    assert joining.wants(Q, page())
    joining.handle_link_down(P)
    assert not joining.wants(P, page())
    joining.handle_link_down(Q)
    assert joining.wants(P, page())


def test_who_does_not_answer_is_asked_again_and_so_are_the_others() -> None:
    joining = attempt()
    joining.wants(Q, page())
    assert joining.ask_again({P: None, STRANGER: None}) == asks(1, P)
    assert joining.answering is None
    joining.machine.joined = JOIN
    assert joining.ask_again({P: None}) == [SetTimer(3.0, AGAIN)]
    assert joining.handle_link_up(P) == []
    assert not joining.wants(P, page())


def test_a_page_that_names_our_join_says_that_it_is_taken() -> None:
    joining = attempt()
    assert not joining.is_taken(page(heads=(JOIN,)))
    joining.machine.joined = JOIN
    assert joining.is_taken(page(heads=(JOIN,)))
    assert not joining.is_taken(page())


def test_at_its_end_everything_is_let_go() -> None:
    ended = attempt().end()
    assert ended == [CancelTimer(PATIENCE), CancelTimer(AGAIN), Release(P, PURPOSE), Release(Q, PURPOSE)]


def public_room_without_cid() -> Circle:
    """A public room of ann and bob; cid was put out of it and knows so, gus was never in it."""
    circle = Circle("ann", "bob", "cid", "gus")
    circle.found("ann", "bob", "cid")
    circle.get("ann", SetRule(circle.room, JoinRule.PUBLIC), object)
    circle.get("ann", SetMembership(circle.room, circle.person("cid"), Membership.LEAVE), object)
    circle.run(5.0)
    assert circle.status("cid").membership is Membership.LEAVE
    return circle


def test_who_was_put_out_shows_the_room_to_no_newcomer() -> None:
    circle = public_room_without_cid()
    declined = circle.declined("gus", JoinRoom(circle.room, None, (circle.contact("cid"),), 10.0))
    assert declined.reason is Reason.NOT_JOINED


def join_while_who_shows_the_room_vanishes(circle: Circle, shows: str, *others: str) -> object | None:
    """Let gus join; who has shown it the room is gone before it hears of the join."""
    contacts = tuple(map(circle.contact, (shows, *others)))
    circle.offline(*others)
    request = circle.network.ask(circle.peer("gus"), JoinRoom(circle.room, None, contacts, 20.0))
    circle.run(0.001)
    while circle.rooms("gus").joins.by_room[circle.room].joined is None:
        circle.run(0.001)
    circle.offline(shows)
    circle.online(*others)
    circle.run(30.0)
    return circle.network.answers[request]


def test_a_join_that_only_one_could_have_heard_is_shown_to_others() -> None:
    circle = public_room_without_cid()
    assert isinstance(join_while_who_shows_the_room_vanishes(circle, "bob", "ann"), RoomMade)
    assert circle.status("gus").membership is Membership.JOIN
    assert circle.status("ann").members == circle.status("gus").members == 3


def test_who_comes_back_shows_what_its_join_builds_on() -> None:
    """Nobody has heard of the first join, nor that it was taken back; the second builds on both."""
    circle = public_room_without_cid()
    assert isinstance(join_while_who_shows_the_room_vanishes(circle, "ann"), Declined)
    circle.online("ann")
    circle.get("gus", JoinRoom(circle.room, None, (circle.contact("ann"),), 20.0), RoomMade)
    assert circle.status("ann").members == circle.status("gus").members == 3
