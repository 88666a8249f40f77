"""Asking a relay to serve a room: asked until it answers, believed only by its card."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, Contact, PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.identity.cards import Card, check_card
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.adding_relay import OWNER, AddingRelay
from linnet.rooms.content import (
    JOIN_RULES,
    MEMBER,
    RELAY,
    JoinRule,
    JoinRules,
    Member,
    Membership,
    Relay,
    body_of,
    member_key,
)
from linnet.rooms.governing import Draft
from linnet.rooms.messages import Greet, RelayAnswer, RelayAsk
from linnet.testing.rooms import Chronicle, person, relay_key

REX = person("rex")
HINTS = ("tls://rex:1",)
CONTACT = Contact(REX.peer, HINTS)


class Scene:
    """Ann asks rex."""

    def __init__(self, known: int = 1) -> None:
        self.chronicle = Chronicle("ann")
        self.room = self.chronicle.room
        self.control = ControlDag(self.chronicle.create)
        self.add(MEMBER, member_key(person("ann").author), Member(Membership.JOIN))
        self.greet = Greet(self.room, person("ann").card, (), (), (), 0, False, (), None, True)
        self.contacts = tuple(Contact(person(f"member {each}").peer, ()) for each in range(known))
        self.adding = AddingRelay(self.room, 5, CONTACT, self.greet, self.contacts)

    def add(self, kind: str, key: str, content: Member | JoinRules) -> None:
        assert self.control.add(self.chronicle.sign("ann", kind, key, content, self.control.heads)) is None

    def tick(self, what: str) -> Tick:
        return Tick(OWNER, what, self.room + REX.peer)

    def answer(self, of: AuthorId = REX.author, card: Card | None = REX.card) -> RelayAnswer:
        return RelayAnswer(self.room, 5, None, of, card)

    def kinds_named(self) -> list[str]:
        return [draft.kind for draft in self.adding.named(self.answer(), self.control.view())]


def test_a_relay_without_a_link_is_dialled_and_asked_once_it_is_there() -> None:
    scene = Scene()
    hold, patience = scene.adding.begin({}, 20.0)
    assert isinstance(hold, Hold)
    assert (hold.peer, hold.hints) == (REX.peer, HINTS)
    assert patience == SetTimer(20.0, scene.tick("patience"))
    asked = [
        Send(REX.peer, scene.greet),  # first: a relay that serves certain people must know who asks
        Send(REX.peer, RelayAsk(scene.room, 5, scene.contacts)),
    ]
    assert scene.adding.up()[:2] == asked
    linked: dict[PeerId, None] = {REX.peer: None}
    assert scene.adding.begin(linked, 20.0)[:4] == [hold, patience, *asked]


def test_it_is_asked_again_while_it_is_silent_but_only_over_a_link() -> None:
    scene = Scene()
    again = scene.adding.up()[-1]
    assert isinstance(again, SetTimer)
    assert again.timer == scene.tick("again")
    assert 0 < again.delay < 20.0
    assert scene.adding.again({}) == []
    assert scene.adding.again({REX.peer: None}) == scene.adding.up()


def test_whatever_was_begun_is_ended() -> None:
    scene = Scene()
    hold = scene.adding.begin({}, 20.0)[0]
    assert isinstance(hold, Hold)
    assert scene.adding.end() == [
        CancelTimer(scene.tick("patience")),
        CancelTimer(scene.tick("again")),
        Release(REX.peer, hold.purpose),
    ]


def test_no_more_contacts_are_told_than_a_message_may_have() -> None:
    scene = Scene(known=70)
    ask = scene.adding.up()[1]
    assert isinstance(ask, Send)
    assert ask.message == RelayAsk(scene.room, 5, scene.contacts[:64])


def test_a_relay_is_believed_by_its_own_card() -> None:
    scene = Scene()
    scene.adding.check(scene.answer(), check_card)


@pytest.mark.parametrize(
    ("of", "card"),
    [
        (REX.author, None),
        (person("bob").author, person("bob").card),
        (person("bob").author, REX.card),
        (REX.author, replace(REX.card, device_key=person("bob").peer)),
    ],
    ids=["no card", "of another device", "of another person than it names", "of another device, changed"],
)
def test_nobody_is_made_a_relay_by_the_word_of_another(of: AuthorId, card: Card | None) -> None:
    """A person who is named may say nothing in the room any more."""
    scene = Scene()
    with pytest.raises(RemoteError) as refused:
        scene.adding.check(scene.answer(of, card), check_card)
    assert refused.value.reason is Reason.UNKNOWN_DEVICE


def test_a_card_that_its_person_has_not_signed_is_none() -> None:
    scene = Scene()
    bob = person("bob").author
    with pytest.raises(RemoteError) as refused:
        scene.adding.check(scene.answer(bob, replace(REX.card, person=bob)), check_card)
    assert refused.value.reason is Reason.BAD_SIGNATURE


def test_its_person_is_invited_before_it_is_named() -> None:
    scene = Scene()
    assert scene.adding.named(scene.answer(), scene.control.view()) == [
        Draft(MEMBER, member_key(REX.author), body_of(Member(Membership.INVITE))),
        Draft(RELAY, relay_key("rex"), body_of(Relay(True, REX.author, HINTS))),
    ]


def test_who_may_come_in_anyway_is_not_invited() -> None:
    scene = Scene()
    scene.add(MEMBER, member_key(REX.author), Member(Membership.INVITE))
    assert scene.kinds_named() == [RELAY]
    public = Scene()
    public.add(JOIN_RULES, "", JoinRules(JoinRule.PUBLIC))
    assert public.kinds_named() == [RELAY]
    knocking = Scene()
    knocking.add(JOIN_RULES, "", JoinRules(JoinRule.KNOCK))
    assert knocking.kinds_named() == [MEMBER, RELAY]


def test_who_has_joined_is_not_invited_again() -> None:
    scene = Scene()
    scene.add(JOIN_RULES, "", JoinRules(JoinRule.PUBLIC))
    joined = scene.chronicle.member("rex", "rex", Membership.JOIN, scene.control.heads)
    assert scene.control.add(joined) is None
    scene.add(JOIN_RULES, "", JoinRules(JoinRule.INVITE))
    assert scene.kinds_named() == [RELAY]
