from __future__ import annotations

import pytest
from msgspec.structs import replace

from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.event.event import Event
from linnet.identity.cards import check_card, revoke
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.access.visiting import visit_allowed
from linnet.rooms.content import (
    JOIN_RULES,
    POWER,
    REVOCATION,
    JoinRule,
    JoinRules,
    Membership,
    Power,
    Revoked,
)
from linnet.rooms.ticket import Ticket
from linnet.testing.rooms import START_MS, Chronicle, person, person_key, ticket_of

NOW = START_MS / 1000


class Door:
    """A room of ann and bob, and whoever stands before it."""

    def __init__(self) -> None:
        self.room = Chronicle("ann")
        self.dag = ControlDag(self.room.create)
        self.member("ann", "ann", Membership.JOIN)
        self.member("ann", "bob", Membership.INVITE)
        self.member("bob", "bob", Membership.JOIN)

    def member(self, who: str, of: str, membership: Membership) -> None:
        self.add(self.room.member(who, of, membership, self.dag.heads))

    def say(self, who: str, kind: str, key: str, content: object) -> None:
        self.add(self.room.sign(who, kind, key, content, self.dag.heads))  # type: ignore[arg-type]

    def add(self, event: Event) -> None:
        assert self.dag.add(event) is None

    def visit(self, who: str, ticket: Ticket | None = None, now: float = NOW) -> Reason | None:
        one = person(who)
        view, room = self.dag.view(), self.room.room
        refusal = visit_allowed(room, view, one.author, one.card.device, ticket, check_card, now)
        return None if refusal is None else refusal.reason

    def revoke(self, who: str) -> None:
        device = person(who).card.device
        self.say(who, REVOCATION, device.hex(), Revoked(revoke(person_key(who), device, 1)))


def test_whoever_could_join_may_look() -> None:
    door = Door()
    assert door.visit("eve") is Reason.NOT_INVITED
    door.member("ann", "eve", Membership.INVITE)
    assert door.visit("eve") is None
    door.member("ann", "eve", Membership.BAN)
    assert door.visit("eve") is Reason.BANNED
    assert door.visit("eve", ticket_of("bob", door.room.room)) is Reason.BANNED


@pytest.mark.parametrize("rule", [JoinRule.PUBLIC, JoinRule.KNOCK])
def test_an_open_room_is_shown_to_all_but_the_banned(rule: JoinRule) -> None:
    door = Door()
    door.say("ann", JOIN_RULES, "", JoinRules(rule))
    door.member("ann", "eve", Membership.BAN)
    assert (door.visit("dan"), door.visit("eve")) == (None, Reason.BANNED)


def test_a_ticket_is_as_good_as_the_word_of_its_inviter() -> None:
    door = Door()
    good = ticket_of("bob", door.room.room)
    assert door.visit("eve", good) is None
    assert door.visit("eve", ticket_of("dan", door.room.room)) is Reason.NOT_INVITED
    door.say("ann", POWER, "", Power(invite=50))
    assert door.visit("eve", good) is Reason.NOT_INVITED
    door.say("ann", POWER, "", Power(invite=0))
    door.revoke("bob")
    assert door.visit("eve", good) is Reason.NOT_INVITED


def test_a_ticket_is_for_one_room_one_time_and_maybe_one_person() -> None:
    door = Door()
    good = ticket_of("bob", door.room.room)
    assert door.visit("eve", good, NOW + 2000) is Reason.INVITATION_EXPIRED
    assert door.visit("eve", ticket_of("bob", TopicId(b"o" * 32))) is Reason.NOT_INVITED
    assert door.visit("eve", ticket_of("bob", door.room.room, "dan")) is Reason.NOT_INVITED
    assert door.visit("dan", ticket_of("bob", door.room.room, "dan")) is None
    later = replace(good, expires_ms=good.expires_ms + 1)
    assert door.visit("eve", later) is Reason.BAD_SIGNATURE


def test_a_device_that_was_revoked_in_the_room_sees_nothing_of_it() -> None:
    door = Door()
    assert door.visit("bob") is None
    door.revoke("bob")
    assert door.visit("bob") is Reason.CARD_REVOKED
    assert door.visit("bob", ticket_of("ann", door.room.room)) is Reason.CARD_REVOKED
