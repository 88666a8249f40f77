"""Rule 4, line by line: who may join, invite, leave, put out, ban and knock."""

from __future__ import annotations

import pytest
from tests.rooms.auth.states import CREATE_FACT, Here, fact, key, member, who
from tests.rooms.chronicle import person, ticket_of

from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.identity.text import Sort, to_text
from linnet.rooms.auth.event_auth import membership_allowed
from linnet.rooms.auth.room_state import Fact, join_rule_in, levels_in, membership_in, revocation_key
from linnet.rooms.event_types import (
    MEMBER,
    PLAIN,
    REVOCATION,
    JoinRule,
    Member,
    Membership,
    Power,
    member_key,
)
from linnet.rooms.invitations import Ticket

INVITE, JOIN, LEAVE, BAN, KNOCK = (
    Membership.INVITE,
    Membership.JOIN,
    Membership.LEAVE,
    Membership.BAN,
    Membership.KNOCK,
)
LEVELS = Power(users={who("mod"): 50, who("admin"): 100, who("peer"): 50}, invite=50)
STAFF = ("mod", "admin", "peer")
FIRST = fact("creator", MEMBER, key("creator"), Member(JOIN), control=(CREATE_FACT.id,))
SNEAKED = fact("alice", MEMBER, key("creator"), Member(JOIN), control=(CREATE_FACT.id,))
SQUEEZED = fact("alice", MEMBER, key("alice"), Member(JOIN), control=(CREATE_FACT.id,))


def reason(event: Fact, here: Here) -> Reason | None:
    refusal = membership_allowed(event, here, levels_in(here))
    return None if refusal is None else refusal.reason


@pytest.mark.parametrize(
    ("event", "here", "expected"),
    [
        # 4.3.1: the founder's first step, and nobody else's.
        (FIRST, Here(creator=LEAVE), None),
        (member("creator", "creator", JOIN), Here(creator=LEAVE), Reason.NOT_INVITED),
        (SNEAKED, Here(creator=LEAVE), Reason.NOT_ALLOWED),
        (SQUEEZED, Here(creator=LEAVE), Reason.NOT_INVITED),
        # 4.3.2: only oneself.
        (member("alice", "bob", JOIN), Here(alice=JOIN, rule=JoinRule.PUBLIC), Reason.NOT_ALLOWED),
        # 4.3.3: not who is banned, whatever the rule.
        (member("alice", "alice", JOIN), Here(alice=BAN, rule=JoinRule.PUBLIC), Reason.BANNED),
        # 4.3.4: by invitation, or who is in.
        (member("alice", "alice", JOIN), Here(alice=INVITE), None),
        (member("alice", "alice", JOIN), Here(alice=JOIN), None),
        (member("alice", "alice", JOIN), Here(alice=LEAVE), Reason.NOT_INVITED),
        (member("alice", "alice", JOIN), Here(), Reason.NOT_INVITED),
        (member("alice", "alice", JOIN), Here(alice=KNOCK, rule=JoinRule.KNOCK), Reason.NOT_INVITED),
        (member("alice", "alice", JOIN), Here(alice=INVITE, rule=JoinRule.KNOCK), None),
        # 4.3.6: everybody.
        (member("alice", "alice", JOIN), Here(rule=JoinRule.PUBLIC), None),
        (member("alice", "alice", JOIN), Here(alice=LEAVE, rule=JoinRule.PUBLIC), None),
        (member("alice", "alice", JOIN), Here(alice=KNOCK, rule=JoinRule.PUBLIC), None),
    ],
)
def test_join(event: Fact, here: Here, expected: Reason | None) -> None:
    assert reason(event, here) is expected


@pytest.mark.parametrize(
    ("event", "here", "expected"),
    [
        # 4.4.2: by who is in.
        (member("alice", "bob", INVITE), Here(), Reason.NOT_A_MEMBER),
        (member("alice", "bob", INVITE), Here(alice=INVITE), Reason.NOT_A_MEMBER),
        (member("alice", "bob", INVITE), Here(alice=BAN), Reason.BANNED),
        # 4.4.3: not who is in or banned.
        (member("alice", "bob", INVITE), Here(alice=JOIN, bob=JOIN), Reason.NOT_ALLOWED),
        (member("alice", "bob", INVITE), Here(alice=JOIN, bob=BAN), Reason.BANNED),
        (member("creator", "bob", INVITE), Here(bob=BAN), Reason.BANNED),
        # 4.4.4: with the level for it.
        (member("alice", "bob", INVITE), Here(alice=JOIN), None),
        (member("alice", "bob", INVITE), Here(alice=JOIN, bob=LEAVE), None),
        (member("alice", "bob", INVITE), Here(alice=JOIN, bob=KNOCK), None),
        (member("alice", "bob", INVITE), Here(alice=JOIN, bob=INVITE), None),
        (member("alice", "bob", INVITE), Here(alice=JOIN, power=LEVELS), Reason.NO_POWER),
        (member("mod", "bob", INVITE), Here(joined=STAFF, power=LEVELS), None),
    ],
)
def test_invite(event: Fact, here: Here, expected: Reason | None) -> None:
    assert reason(event, here) is expected


@pytest.mark.parametrize(
    ("event", "here", "expected"),
    [
        # 4.5.1: oneself, if there is something to leave.
        (member("alice", "alice", LEAVE), Here(alice=JOIN), None),
        (member("alice", "alice", LEAVE), Here(alice=INVITE), None),
        (member("alice", "alice", LEAVE), Here(alice=KNOCK), None),
        (member("alice", "alice", LEAVE), Here(alice=LEAVE), Reason.NOT_A_MEMBER),
        (member("alice", "alice", LEAVE), Here(), Reason.NOT_A_MEMBER),
        (member("alice", "alice", LEAVE), Here(alice=BAN), Reason.BANNED),
        # 4.5.2: others, by who is in.
        (member("alice", "bob", LEAVE), Here(bob=JOIN), Reason.NOT_A_MEMBER),
        # 4.5.3: an unban takes the level of a ban.
        (
            member("mod", "bob", LEAVE),
            Here(joined=STAFF, bob=BAN, power=Power(users=LEVELS.users, ban=60)),
            Reason.NO_POWER,
        ),
        (member("mod", "bob", LEAVE), Here(joined=STAFF, bob=BAN, power=LEVELS), None),
        (
            member("mod", "bob", LEAVE),
            Here(joined=STAFF, bob=BAN, power=Power(users=LEVELS.users, kick=60)),
            Reason.NO_POWER,
        ),
        # 4.5.4: the level to put out, and more than they have.
        (member("mod", "bob", LEAVE), Here(joined=STAFF, bob=JOIN, power=LEVELS), None),
        (member("mod", "bob", LEAVE), Here(joined=STAFF, bob=INVITE, power=LEVELS), None),
        (member("bob", "alice", LEAVE), Here(bob=JOIN, alice=JOIN, power=LEVELS), Reason.NO_POWER),
        (member("mod", "peer", LEAVE), Here(joined=STAFF, power=LEVELS), Reason.NO_POWER),
        (member("mod", "admin", LEAVE), Here(joined=STAFF, power=LEVELS), Reason.NO_POWER),
        (member("admin", "creator", LEAVE), Here(joined=STAFF, power=LEVELS), Reason.NO_POWER),
        (member("creator", "second", LEAVE), Here(), Reason.NO_POWER),
        (member("creator", "admin", LEAVE), Here(joined=STAFF, power=LEVELS), None),
    ],
)
def test_leave_and_kick(event: Fact, here: Here, expected: Reason | None) -> None:
    assert reason(event, here) is expected


@pytest.mark.parametrize(
    ("event", "here", "expected"),
    [
        (member("mod", "bob", BAN), Here(joined=STAFF, bob=JOIN, power=LEVELS), None),
        (member("mod", "bob", BAN), Here(joined=STAFF, power=LEVELS), None),
        (member("mod", "bob", BAN), Here(bob=JOIN, power=LEVELS), Reason.NOT_A_MEMBER),
        (member("mod", "bob", BAN), Here(mod=BAN, bob=JOIN, power=LEVELS), Reason.BANNED),
        (member("bob", "alice", BAN), Here(bob=JOIN, power=LEVELS), Reason.NO_POWER),
        (member("mod", "peer", BAN), Here(joined=STAFF, power=LEVELS), Reason.NO_POWER),
        (member("mod", "mod", BAN), Here(joined=STAFF, power=LEVELS), Reason.NO_POWER),
        (member("admin", "creator", BAN), Here(joined=STAFF, power=LEVELS), Reason.NO_POWER),
        (member("creator", "admin", BAN), Here(joined=STAFF, power=LEVELS), None),
    ],
)
def test_ban(event: Fact, here: Here, expected: Reason | None) -> None:
    assert reason(event, here) is expected


@pytest.mark.parametrize(
    ("event", "here", "expected"),
    [
        (member("alice", "alice", KNOCK), Here(rule=JoinRule.KNOCK), None),
        (member("alice", "alice", KNOCK), Here(alice=LEAVE, rule=JoinRule.KNOCK), None),
        (member("alice", "alice", KNOCK), Here(alice=KNOCK, rule=JoinRule.KNOCK), None),
        (member("alice", "alice", KNOCK), Here(), Reason.NOT_ALLOWED),
        (member("alice", "alice", KNOCK), Here(rule=JoinRule.PUBLIC), Reason.NOT_ALLOWED),
        (member("bob", "alice", KNOCK), Here(bob=JOIN, rule=JoinRule.KNOCK), Reason.NOT_ALLOWED),
        (member("alice", "alice", KNOCK), Here(alice=BAN, rule=JoinRule.KNOCK), Reason.BANNED),
        (member("alice", "alice", KNOCK), Here(alice=INVITE, rule=JoinRule.KNOCK), Reason.NOT_ALLOWED),
        (member("alice", "alice", KNOCK), Here(alice=JOIN, rule=JoinRule.KNOCK), Reason.NOT_ALLOWED),
    ],
)
def test_knock(event: Fact, here: Here, expected: Reason | None) -> None:
    assert reason(event, here) is expected


def test_a_membership_without_a_key_or_content_is_none() -> None:
    assert reason(fact("alice", MEMBER, None, Member(JOIN)), Here(rule=JoinRule.PUBLIC)) is Reason.MALFORMED
    assert reason(fact("alice", MEMBER, key("alice"), PLAIN), Here(rule=JoinRule.PUBLIC)) is Reason.MALFORMED


def by_ticket(ticket: Ticket) -> Fact:
    return fact("alice", MEMBER, key("alice"), Member(JOIN, None, ticket))


def house(inviter: Membership, *, invite: int = 0, level: int = 0, alice: Membership = LEAVE) -> Here:
    """A state in which the person of the ticket stands so."""
    host = person("host").author
    here = Here(alice=alice, power=Power(users={host: level}, invite=invite))
    here.places[MEMBER, member_key(host)] = fact("host", MEMBER, member_key(host), Member(inviter))
    return here


TICKET = ticket_of("host", TopicId(CREATE_FACT.id))


@pytest.mark.parametrize(
    ("here", "expected"),
    [
        (house(JOIN), None),
        (house(JOIN, alice=KNOCK), None),
        (house(JOIN, alice=BAN), Reason.BANNED),
        (house(LEAVE), Reason.NOT_INVITED),
        (house(BAN), Reason.NOT_INVITED),
        (house(INVITE), Reason.NOT_INVITED),
        (house(JOIN, invite=50, level=49), Reason.NOT_INVITED),
        (house(JOIN, invite=50, level=50), None),
    ],
)
def test_a_ticket_is_worth_what_its_inviter_may(here: Here, expected: Reason | None) -> None:
    assert reason(by_ticket(TICKET), here) is expected


def test_a_ticket_of_a_revoked_device_is_worth_nothing() -> None:
    here = house(JOIN)
    place = revocation_key(TICKET.inviter, TICKET.card.device)
    here.places[REVOCATION, place] = fact("host", REVOCATION, place)
    assert reason(by_ticket(TICKET), here) is Reason.NOT_INVITED


def test_a_relay_invites_nobody() -> None:
    class Relayed(Here):
        def is_relay_person(self, person: object) -> bool:
            return person == TICKET.inviter

    here = Relayed(alice=LEAVE)
    here.places.update(house(JOIN).places)
    assert reason(by_ticket(TICKET), here) is Reason.NOT_INVITED


def test_what_was_never_said_is_left_and_by_invitation() -> None:
    assert membership_in(Here(), to_text(Sort.PERSON, who("stranger"))) is LEAVE
    assert join_rule_in(Here()) is JoinRule.INVITE
    assert join_rule_in(Here(rule=JoinRule.KNOCK)) is JoinRule.KNOCK
