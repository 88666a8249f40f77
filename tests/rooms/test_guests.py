"""Who is at the other end of a link: a member, a relay, a visitor, or nobody."""

from __future__ import annotations

import pytest
from msgspec import Struct
from msgspec.structs import replace

from linnet.core.errors import RemoteError
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.delivery.cards import CardBook
from linnet.identity.cards import Card, issue_card, revoke
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.content import (
    JOIN_RULES,
    MEMBER,
    RELAY,
    REVOCATION,
    JoinRule,
    JoinRules,
    Member,
    Membership,
    Relay,
    Revoked,
    member_key,
)
from linnet.rooms.guests import Guest, Guests
from linnet.rooms.messages import Greet
from linnet.rooms.ticket import Ticket
from linnet.sim.clock import START
from linnet.store.memory import MemoryStore
from linnet.testing.rooms import START_MS, Chronicle, person, person_key, relay_key, ticket_of

NOW = START
"""When all cards are good."""
HEAD = EventId(b"h" * 32)


class Scene:
    """Ann's room, with bob in it."""

    def __init__(self) -> None:
        self.chronicle = Chronicle("ann")
        self.control = ControlDag(self.chronicle.create)
        self.cards = CardBook(MemoryStore().cells)
        self.guests = Guests(self.control, self.cards)
        self.member("ann", "ann", Membership.JOIN)
        self.member("ann", "bob", Membership.INVITE)
        self.member("bob", "bob", Membership.JOIN)

    def add(self, who: str, kind: str, key: str, content: Struct) -> None:
        assert self.control.add(self.chronicle.sign(who, kind, key, content, self.control.heads)) is None

    def member(self, who: str, of: str, membership: Membership) -> None:
        self.add(who, MEMBER, member_key(person(of).author), Member(membership))

    def relay(self, name: str, active: bool = True) -> None:
        self.add("ann", RELAY, relay_key(name), Relay(active, person(name).author))

    def revoke(self, name: str) -> None:
        device = person(name).card.device
        self.add(name, REVOCATION, device.hex(), Revoked(revoke(person_key(name), device, 0)))

    def greeting(self, name: str, card: Card | None = None, answer: bool = False) -> Greet:
        own = card or person(name).card
        return Greet(self.chronicle.room, own, (), (HEAD,), (), 7, False, (), None, answer)

    def greet(self, name: str, card: Card | None = None, now: float = NOW) -> Guest:
        return self.guests.greeted(person(name).peer, self.greeting(name, card), now)

    def refused(self, name: str, card: Card | None = None, now: float = NOW) -> Reason:
        with pytest.raises(RemoteError) as refusal:
            self.greet(name, card, now)
        return refusal.value.reason

    def visit(self, name: str, ticket: Ticket | None = None, now: float = NOW) -> Reason | None:
        """Why somebody is not shown the control DAG."""
        who = person(name)
        try:
            self.guests.check_visitor(who.peer, who.card, ticket, now)
        except RemoteError as refusal:
            return refusal.reason
        return None


def test_a_member_who_greets_is_there_with_what_it_told() -> None:
    scene = Scene()
    guest = scene.greet("bob")
    assert (guest.person, guest.relay, guest.heads, guest.events) == (
        person("bob").author,
        False,
        (HEAD,),
        7,
    )
    guest.greeted = True
    assert scene.greet("bob").greeted  # it is the same one, further on
    assert list(scene.guests.members) == [person("bob").peer]
    scene.guests.down(person("bob").peer)
    assert list(scene.guests.members) == []


def test_a_relay_is_there_and_is_no_member() -> None:
    scene = Scene()
    scene.relay("rex")
    assert scene.greet("rex").relay
    assert list(scene.guests.by_peer) == [person("rex").peer]
    assert scene.guests.members == ()
    scene.member("ann", "rex", Membership.BAN)
    assert scene.refused("rex") is Reason.BANNED


def test_who_is_not_joined_is_told_why_it_is_none_of_the_room() -> None:
    scene = Scene()
    assert scene.refused("eve") is Reason.NOT_A_MEMBER
    scene.member("ann", "eve", Membership.INVITE)
    assert scene.refused("eve") is Reason.NOT_A_MEMBER
    scene.member("ann", "bob", Membership.BAN)
    assert scene.refused("bob") is Reason.BANNED
    assert scene.guests.by_peer == {}


def test_a_card_is_of_the_links_own_device_signed_and_good_now() -> None:
    scene = Scene()
    bob = person("bob").card
    assert scene.refused("eve", bob) is Reason.UNKNOWN_DEVICE
    assert scene.refused("eve", replace(person("eve").card, person=bob.person)) is Reason.BAD_SIGNATURE
    assert scene.refused("bob", now=bob.not_after + 301) is Reason.CARD_EXPIRED
    assert scene.refused("bob", now=bob.not_before - 301) is Reason.CARD_NOT_YET_VALID
    assert scene.guests.by_peer == {}
    assert scene.cards.find(bob.person, person("eve").card.device) is None


def test_a_device_that_was_revoked_in_the_room_is_none_of_it() -> None:
    scene = Scene()
    scene.greet("bob")
    scene.revoke("bob")
    assert scene.guests.expel() == (person("bob").peer,)
    assert scene.refused("bob") is Reason.CARD_REVOKED
    device = person("second device of bob").peer
    card = issue_card(person_key("bob"), device, int(NOW), int(NOW) + 9)
    assert scene.greet("second device of bob", card).person == person("bob").author


def test_who_greets_before_its_join_comes_is_remembered_until_it_does() -> None:
    scene = Scene()
    eve = person("eve")
    scene.member("ann", "eve", Membership.INVITE)
    with pytest.raises(RemoteError):
        scene.guests.greeted(eve.peer, scene.greeting("eve", answer=True), NOW)
    assert scene.guests.admitted() == []
    scene.member("eve", "eve", Membership.JOIN)
    # as one that is to be answered: the refusal was all that it has had
    assert scene.guests.admitted() == [(eve.peer, scene.greeting("eve", answer=False))]
    assert scene.guests.admitted() == []


def test_a_greeting_that_was_in_vain_is_forgotten_with_its_link() -> None:
    scene = Scene()
    scene.member("ann", "eve", Membership.INVITE)
    scene.refused("eve")
    scene.guests.down(person("eve").peer)
    scene.member("eve", "eve", Membership.JOIN)
    assert scene.guests.admitted() == []


def test_only_the_latest_greetings_in_vain_are_remembered() -> None:
    scene = Scene()
    for number in range(65):
        scene.member("ann", f"guest {number}", Membership.INVITE)
        assert scene.refused(f"guest {number}") is Reason.NOT_A_MEMBER
    for number in (0, 1, 64):
        scene.member(f"guest {number}", f"guest {number}", Membership.JOIN)
    admitted = [peer for peer, _ in scene.guests.admitted()]
    assert admitted == [person("guest 1").peer, person("guest 64").peer]


def test_whoever_is_no_longer_of_the_room_is_put_out() -> None:
    scene = Scene()
    scene.relay("rex")
    scene.greet("ann")
    scene.greet("bob")
    scene.greet("rex")
    assert scene.guests.expel() == ()
    scene.member("ann", "bob", Membership.LEAVE)
    scene.relay("rex", active=False)
    assert scene.guests.expel() == (person("bob").peer, person("rex").peer)
    assert list(scene.guests.by_peer) == [person("ann").peer]


def test_a_member_that_becomes_a_relay_must_greet_as_one() -> None:
    scene = Scene()
    scene.greet("bob")
    scene.relay("bob")
    assert scene.guests.expel() == (person("bob").peer,)
    assert scene.greet("bob").relay


def test_the_control_dag_is_shown_to_whoever_could_join_by_it() -> None:
    scene = Scene()
    room = scene.chronicle.room
    assert scene.visit("eve") is Reason.NOT_INVITED
    assert scene.visit("eve", ticket_of("ann", room)) is None
    assert scene.visit("eve", ticket_of("ann", room, guest="dan")) is Reason.NOT_INVITED
    ended = ticket_of("ann", room, expires=int(NOW * 1000) - START_MS)
    assert scene.visit("eve", ended, NOW + 299) is None
    assert scene.visit("eve", ended, NOW + 301) is Reason.INVITATION_EXPIRED
    scene.member("ann", "eve", Membership.INVITE)
    assert scene.visit("eve") is None
    scene.member("ann", "eve", Membership.BAN)
    assert scene.visit("eve", ticket_of("ann", room)) is Reason.BANNED
    scene.add("ann", JOIN_RULES, "", JoinRules(JoinRule.PUBLIC))
    assert scene.visit("dan") is None
    assert scene.visit("eve") is Reason.BANNED


def test_a_visitor_says_who_it_is_unless_it_is_a_relay() -> None:
    scene = Scene()
    scene.relay("rex")
    eve, ticket = person("eve"), ticket_of("ann", scene.chronicle.room)
    scene.guests.check_visitor(person("rex").peer, None, None, NOW)
    forged = replace(eve.card, person=person("bob").author)
    for card, reason in (
        (None, Reason.UNKNOWN_DEVICE),
        (person("bob").card, Reason.UNKNOWN_DEVICE),
        (forged, Reason.BAD_SIGNATURE),
    ):
        with pytest.raises(RemoteError) as refusal:
            scene.guests.check_visitor(eve.peer, card, ticket, NOW)
        assert refusal.value.reason is reason
    assert scene.visit("eve", ticket, eve.card.not_after + 301) is Reason.CARD_EXPIRED
    assert scene.cards.find(eve.author, eve.card.device) is None  # visitors fill nobody's book
