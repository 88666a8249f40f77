"""Questions of others about a room: who is told what."""

from __future__ import annotations

from typing import TypeVar

import pytest
from tests.rooms.bench import Bench

from linnet.core.effects import AfterCommit, Send
from linnet.core.ids import Contact, EventId
from linnet.core.reasons import Reason
from linnet.delivery.causal_messages import Beyond, Further, Given, Want
from linnet.identity.text import Sort, to_text
from linnet.rooms.commands import SendToRoom, SetMembership, SetRule
from linnet.rooms.content import RELAY, JoinRule, Membership, Relay, body_of
from linnet.rooms.effects import RoomStep
from linnet.rooms.messages import AskControl, ControlPage, Refused
from linnet.rooms.ticket import Ticket
from linnet.trace.records import Kind, Record

M = TypeVar("M")
HINTS = ("tls://rex:1",)
GREET_FIRST = "greet first"


class Scene(Bench):
    """Ann's room, with bob in it and rex as a relay, in which something was said."""

    def __init__(self) -> None:
        super().__init__()
        self.join("bob")
        rex = self.who("rex")
        named = body_of(Relay(True, rex.author, HINTS))
        self.named = self.govern(RELAY, to_text(Sort.DEVICE, rex.peer), named)
        (self.secret,) = self.say(SendToRoom(self.id, (b"secret",)))

    def promised(self, name: str, steps: list[RoomStep], kind: type[M]) -> M:
        """The one answer, which waits until what it tells is durable."""
        (after,) = steps
        assert isinstance(after, AfterCommit)
        (send,) = after.effects
        assert isinstance(send, Send)
        assert send.peer == self.link(name)
        assert isinstance(send.message, kind)
        return send.message

    def refused(self, name: str) -> list[RoomStep]:
        peer = self.link(name)
        return [
            Record(Kind.REJECTED, self.id, peer=peer, reason=Reason.NOT_A_MEMBER, note=GREET_FIRST),
            Send(peer, Refused(self.id, None, Reason.NOT_A_MEMBER, GREET_FIRST)),
        ]

    def want(self, name: str, *ids: EventId) -> list[RoomStep]:
        return self.room.answering.on_want(self.link(name), Want(self.id, 5, ids))

    def beyond(self, name: str) -> list[RoomStep]:
        return self.room.answering.on_beyond(self.link(name), Beyond(self.id, 6, ()))

    def control(self, name: str, asked: AskControl) -> list[RoomStep]:
        return self.room.answering.on_ask_control(self.link(name), asked, self.now)

    def visited(self, name: str, ticket: Ticket | None = None) -> ControlPage:
        """A page for somebody who shows its card."""
        return self.promised(name, self.control(name, self.asking(name, ticket)), ControlPage)

    def asking(self, name: str, ticket: Ticket | None = None) -> AskControl:
        return AskControl(self.id, 7, (), ticket, self.who(name).card)

    def put_out(self, name: str, membership: Membership) -> EventId:
        (removal,) = self.say(SetMembership(self.id, self.who(name).author, membership))
        return removal


def test_a_member_is_given_what_it_asks_for() -> None:
    scene = Scene()
    given = scene.promised("bob", scene.want("bob", scene.secret, scene.named), Given)
    assert (given.request, len(given.units), given.unknown) == (5, 2, ())
    further = scene.promised("bob", scene.beyond("bob"), Further)
    assert further.request == 6
    assert len(further.units) == len(scene.room.dag)


@pytest.mark.parametrize("greets", [False, True])
def test_a_relay_is_given_control_events_whether_it_has_greeted_or_not(greets: bool) -> None:
    scene = Scene()
    if greets:
        scene.up("rex")
        scene.greet("rex")
    given = scene.promised("rex", scene.want("rex", scene.secret, scene.named), Given)
    assert (len(given.units), given.unknown) == (1, (scene.secret,))
    assert given.reason is Reason.NOT_HELD
    assert scene.beyond("rex") == scene.refused("rex")


def test_others_are_told_nothing_and_why() -> None:
    scene = Scene()
    scene.up("eve")
    assert scene.want("eve", scene.secret) == scene.refused("eve")
    assert scene.beyond("eve") == scene.refused("eve")


def test_a_member_without_a_link_greets_before_it_is_told_anything() -> None:
    scene = Scene()
    scene.down("bob")
    assert scene.want("bob", scene.secret) == scene.refused("bob")
    scene.up("bob")
    assert scene.beyond("bob") == scene.refused("bob")


def test_members_and_relays_ask_for_control_events_without_a_card() -> None:
    scene = Scene()
    for name in ("bob", "rex"):
        page = scene.promised(name, scene.control(name, AskControl(scene.id, 7, (), None)), ControlPage)
        assert (page.request, page.heads, page.reason) == (7, scene.room.control.heads, None)
        assert len(page.units) == len(scene.room.control)
    known = AskControl(scene.id, 8, scene.room.control.heads, None)
    assert scene.promised("bob", scene.control("bob", known), ControlPage).units == ()


def test_a_visitor_with_a_ticket_is_shown_how_to_join_and_where_the_relays_are() -> None:
    scene = Scene()
    page = scene.visited("eve", scene.ticket())
    assert len(page.units) == len(scene.room.control)
    assert page.relays == (Contact(scene.link("rex"), HINTS),)


def test_a_visitor_who_may_not_is_told_why_and_nothing_else() -> None:
    scene = Scene()
    eve = scene.link("eve")
    nobody = AskControl(scene.id, 7, (), scene.ticket(), None)
    for asked, reason in (
        (scene.asking("eve"), Reason.NOT_INVITED),
        (scene.asking("eve", scene.ticket(person="dan")), Reason.NOT_INVITED),
        (scene.asking("eve", scene.ticket(lasts=-301.0)), Reason.INVITATION_EXPIRED),
        (scene.asking("dan", scene.ticket()), Reason.UNKNOWN_DEVICE),
        (nobody, Reason.UNKNOWN_DEVICE),
    ):
        assert scene.control("eve", asked) == [
            Record(Kind.REJECTED, scene.id, peer=eve, reason=reason, note="control DAG"),
            Send(eve, ControlPage(scene.id, 7, (), (), False, (), (), reason)),
        ]


def test_anyone_is_shown_how_to_join_a_public_room() -> None:
    scene = Scene()
    scene.say(SetRule(scene.id, JoinRule.PUBLIC))
    assert len(scene.visited("eve").units) == len(scene.room.control)


@pytest.mark.parametrize("how", [Membership.LEAVE, Membership.BAN])
def test_who_was_put_out_is_shown_that_and_nothing_after_it(how: Membership) -> None:
    scene = Scene()
    removal = scene.put_out("bob", how)
    before = len(scene.room.control)
    scene.say(SetRule(scene.id, JoinRule.KNOCK))
    scene.say(SetRule(scene.id, JoinRule.INVITE))
    page = scene.visited("bob")
    assert (page.heads, page.relays, page.reason) == ((removal,), (), None)
    assert len(page.units) == before


def test_its_own_removal_is_shown_to_nobody_by_the_card_of_another() -> None:
    scene = Scene()
    scene.put_out("bob", Membership.BAN)
    (_, send) = scene.control("eve", scene.asking("bob"))
    assert isinstance(send, Send)
    assert isinstance(send.message, ControlPage)
    assert (send.message.units, send.message.reason) == ((), Reason.UNKNOWN_DEVICE)


def test_who_has_left_by_itself_knows_it() -> None:
    scene = Scene()
    scene.bring("bob", scene.membership("bob", "bob", Membership.LEAVE))
    (_, send) = scene.control("bob", scene.asking("bob"))
    assert isinstance(send, Send)
    assert isinstance(send.message, ControlPage)
    assert (send.message.units, send.message.reason) == ((), Reason.NOT_INVITED)


def test_who_never_was_in_the_room_is_not_shown_that_it_may_not_come() -> None:
    scene = Scene()
    scene.put_out("eve", Membership.BAN)
    scene.put_out("dan", Membership.INVITE)
    scene.put_out("dan", Membership.LEAVE)
    for name, reason in (("eve", Reason.BANNED), ("dan", Reason.NOT_INVITED)):
        (_, send) = scene.control(name, scene.asking(name))
        assert isinstance(send, Send)
        assert isinstance(send.message, ControlPage)
        assert (send.message.units, send.message.reason) == ((), reason)


def test_who_was_put_out_and_then_banned_was_a_member_once() -> None:
    scene = Scene()
    scene.put_out("bob", Membership.LEAVE)
    ban = scene.put_out("bob", Membership.BAN)
    assert scene.visited("bob").heads == (ban,)
