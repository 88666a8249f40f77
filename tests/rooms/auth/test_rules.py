"""What a state allows of everything but memberships; those are in test_membership_rules.py."""

from __future__ import annotations

import pytest
from tests.rooms.auth.states import CREATE_FACT, Here, device, fact, key, member, relay_text, who

from linnet.core.reasons import Reason
from linnet.identity.cards import Revocation
from linnet.rooms.auth.event_auth import allowed
from linnet.rooms.auth.room_state import Fact, Version, revocation_key
from linnet.rooms.event_types import (
    CREATE,
    JOIN_RULES,
    MEMBER,
    NAME,
    POWER,
    RELAY,
    RETENTION,
    REVOCATION,
    Create,
    JoinRule,
    JoinRules,
    Member,
    Membership,
    Power,
    Relay,
    Retention,
    Revoked,
)

JOIN, LEAVE, BAN, INVITE = Membership.JOIN, Membership.LEAVE, Membership.BAN, Membership.INVITE
LEVELS = Power(users={who("mod"): 50, who("admin"): 100})
NAME_AT_51 = Power(LEVELS.users, events={NAME: 51})
MORE = Power(users={who("mod"): 60})


def reason(event: Fact, here: Here, version: Version = Version.V12) -> Reason | None:
    refusal = allowed(event, here, version)
    return None if refusal is None else refusal.reason


def relay(sender: str, name: str, active: bool = True) -> Fact:
    return fact(sender, RELAY, relay_text(name), Relay(active, who(name)))


def revocation(sender: str) -> Fact:
    content = Revoked(Revocation(who(sender), device("spare"), 0, bytes(64)))
    return fact(sender, REVOCATION, revocation_key(who(sender), device("spare")), content)


@pytest.mark.parametrize(
    ("event", "here", "expected"),
    [
        # 1: founded once.
        (CREATE_FACT, Here(), None),
        (fact("creator", CREATE, "", Create(1, (), bytes(16))), Here(), Reason.NOT_ALLOWED),
        # 5: only who is in.
        (fact("alice"), Here(alice=JOIN), None),
        (fact("alice"), Here(), Reason.NOT_A_MEMBER),
        (fact("alice"), Here(alice=INVITE), Reason.NOT_A_MEMBER),
        (fact("alice"), Here(alice=LEAVE), Reason.NOT_A_MEMBER),
        (fact("alice"), Here(alice=BAN), Reason.BANNED),
        (fact("creator"), Here(creator=LEAVE), Reason.NOT_A_MEMBER),
        # 7: with the level for it.
        (fact("alice"), Here(alice=JOIN, power=Power(events_default=1)), Reason.NO_POWER),
        (fact("alice", NAME, ""), Here(alice=JOIN), Reason.NO_POWER),
        (fact("mod", NAME, ""), Here(mod=JOIN, power=LEVELS), None),
        (fact("alice", NAME, ""), Here(alice=JOIN, power=Power(events={NAME: 0})), None),
        (
            fact("mod", NAME, ""),
            Here(mod=JOIN, power=NAME_AT_51),
            Reason.NO_POWER,
        ),
        (fact("mod", JOIN_RULES, "", JoinRules(JoinRule.PUBLIC)), Here(mod=JOIN, power=LEVELS), None),
        (fact("alice", JOIN_RULES, "", JoinRules(JoinRule.PUBLIC)), Here(alice=JOIN), Reason.NO_POWER),
        (fact("mod", RETENTION, "", Retention(1)), Here(mod=JOIN, power=LEVELS), None),
        (fact("alice", RETENTION, "", Retention(1)), Here(alice=JOIN), Reason.NO_POWER),
        (fact("alice", POWER, "", Power()), Here(alice=JOIN), Reason.NO_POWER),
        (fact("creator", POWER, "", LEVELS), Here(), None),
        # 8: nothing that is keyed by another person.
        (fact("mod", "mood", key("mod")), Here(mod=JOIN, power=LEVELS), None),
        (fact("mod", "mood", key("alice")), Here(mod=JOIN, power=LEVELS), Reason.NOT_ALLOWED),
        (fact("mod", "mood", key("alice").upper()), Here(mod=JOIN, power=LEVELS), Reason.NOT_ALLOWED),
        (fact("creator", "mood", key("alice")), Here(), Reason.NOT_ALLOWED),
        (fact("mod", "mood", "alice"), Here(mod=JOIN, power=LEVELS), None),
        (fact("mod", "mood", relay_text("alice")), Here(mod=JOIN, power=LEVELS), None),
        # 9: power levels; the rest of it is in test_power_rules.py.
        (
            fact("mod", POWER, "", MORE),
            Here(mod=JOIN, power=LEVELS),
            Reason.NO_POWER,
        ),
        (fact("mod", POWER, "", LEVELS), Here(mod=JOIN, power=LEVELS), None),
    ],
)
def test_rules(event: Fact, here: Here, expected: Reason | None) -> None:
    assert reason(event, here) is expected


@pytest.mark.parametrize(
    ("event", "here", "expected"),
    [
        (relay("mod", "relay"), Here(mod=JOIN, power=LEVELS), None),
        (relay("alice", "relay"), Here(alice=JOIN, power=LEVELS), Reason.NO_POWER),
        (relay("mod", "mod"), Here(mod=JOIN, power=LEVELS), Reason.NOT_ALLOWED),
        (relay("mod", "mod", active=False), Here(mod=JOIN, power=LEVELS), None),
        (relay("mod", "admin"), Here(mod=JOIN, admin=JOIN, power=LEVELS), Reason.NO_POWER),
        (relay("admin", "creator"), Here(admin=JOIN, power=LEVELS), Reason.NO_POWER),
        (relay("creator", "second"), Here(), Reason.NO_POWER),
        (relay("creator", "admin"), Here(admin=JOIN, power=LEVELS), None),
    ],
)
def test_naming_a_relay(event: Fact, here: Here, expected: Reason | None) -> None:
    """It silences a person, so nobody does it to those above them."""
    assert reason(event, here) is expected


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (member("relay", "relay", JOIN), None),
        (member("relay", "relay", LEAVE), None),
        (fact("relay"), Reason.RELAY_ONLY),
        (fact("relay", NAME, ""), Reason.RELAY_ONLY),
        (member("relay", "alice", INVITE), Reason.RELAY_ONLY),
        (relay("relay", "other"), Reason.RELAY_ONLY),
        (revocation("relay"), Reason.RELAY_ONLY),
    ],
)
def test_a_relay_says_nothing_but_its_own_membership(event: Fact, expected: Reason | None) -> None:
    assert reason(event, Here(relay=JOIN, relays=("relay",))) is expected


@pytest.mark.parametrize(
    "event",
    [
        fact("alice"),
        member("alice", "alice", LEAVE),
        fact("alice", MEMBER, key("alice"), Member(JOIN)),
        revocation("alice"),
    ],
)
def test_a_revoked_device_says_nothing(event: Fact) -> None:
    assert reason(event, Here(alice=JOIN, revoked=("alice",))) is Reason.CARD_REVOKED
    assert reason(event, Here(alice=JOIN, revoked=("bob",))) is None


def test_everyone_in_the_room_may_revoke_their_own_device() -> None:
    """Whatever their level: it is theirs."""
    assert reason(revocation("alice"), Here(alice=JOIN, power=Power(state_default=100))) is None
    assert reason(revocation("alice"), Here()) is Reason.NOT_A_MEMBER


def test_another_persons_revocation_of_the_same_device_id_means_nothing() -> None:
    """Nothing proves whose a device is, so what mallory says of alice's is only about mallory."""
    here = Here(alice=JOIN, mallory=JOIN)
    place = revocation_key(who("mallory"), device("alice"))
    content = Revoked(Revocation(who("mallory"), device("alice"), 0, bytes(64)))
    here.places[REVOCATION, place] = fact("mallory", REVOCATION, place, content)
    assert reason(fact("alice"), here) is None


def test_the_version_decides_about_creators() -> None:
    here = Here(power=Power())
    assert reason(fact("creator", NAME, ""), here, Version.V12) is None
    assert reason(fact("creator", NAME, ""), here, Version.V11) is Reason.NO_POWER


def test_the_rule_is_named() -> None:
    refusal = allowed(fact("alice", NAME, ""), Here(alice=JOIN))
    assert refusal is not None
    assert refusal.rule == "name: level 0 is below 50"
