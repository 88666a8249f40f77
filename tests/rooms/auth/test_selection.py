"""Which events authorise an event."""

from __future__ import annotations

import immutables
import pytest
from tests.rooms.auth.states import CREATE_FACT, device, fact, key, member, who
from tests.rooms.chronicle import ticket_of

from linnet.core.ids import EventId, TopicId
from linnet.rooms.auth.event_auth import auth_keys, select, select_in_room
from linnet.rooms.auth.room_state import (
    CREATE_KEY,
    JOIN_RULES_KEY,
    POWER_KEY,
    RETENTION_KEY,
    Fact,
    State,
    StateKey,
    Version,
    revocation_key,
)
from linnet.rooms.event_types import (
    JOIN_RULES,
    MEMBER,
    NAME,
    POWER,
    RETENTION,
    REVOCATION,
    JoinRule,
    JoinRules,
    Member,
    Membership,
    Power,
    Retention,
    member_key,
)

ALICE: StateKey = (MEMBER, key("alice"))
BOB: StateKey = (MEMBER, key("bob"))
TICKET = ticket_of("host", TopicId(bytes(32)))
HOST: StateKey = (MEMBER, member_key(TICKET.inviter))


def own_revocation(name: str) -> StateKey:
    return REVOCATION, revocation_key(who(name), device(name))


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (fact("alice"), {POWER_KEY, ALICE}),
        (fact("alice", NAME, ""), {POWER_KEY, ALICE}),
        (fact("alice", POWER, "", Power()), {POWER_KEY, ALICE}),
        (fact("alice", JOIN_RULES, "", JoinRules(JoinRule.PUBLIC)), {POWER_KEY, ALICE}),
        (member("alice", "alice", Membership.JOIN), {POWER_KEY, ALICE, JOIN_RULES_KEY}),
        (member("alice", "alice", Membership.KNOCK), {POWER_KEY, ALICE, JOIN_RULES_KEY}),
        (member("alice", "bob", Membership.INVITE), {POWER_KEY, ALICE, BOB, JOIN_RULES_KEY}),
        (member("alice", "bob", Membership.BAN), {POWER_KEY, ALICE, BOB}),
        (member("alice", "bob", Membership.LEAVE), {POWER_KEY, ALICE, BOB}),
        (member("alice", "alice", Membership.LEAVE), {POWER_KEY, ALICE}),
    ],
)
def test_keys(event: Fact, expected: set[StateKey]) -> None:
    """Version 12 leaves the create event out; version 11 lists it. A revocation of the device is ours."""
    keys = auth_keys(event)
    assert len(set(keys)) == len(keys)
    assert set(keys) == expected | {own_revocation("alice")}
    assert set(auth_keys(event, Version.V11)) == set(keys) | {CREATE_KEY}


def test_a_create_event_is_authorised_by_nothing() -> None:
    assert auth_keys(CREATE_FACT) == auth_keys(CREATE_FACT, Version.V11) == ()


def test_a_ticket_asks_for_its_inviter() -> None:
    event = fact("alice", MEMBER, key("alice"), Member(Membership.JOIN, None, TICKET))
    inviting = (REVOCATION, revocation_key(TICKET.inviter, TICKET.card.device))
    assert set(auth_keys(event)) == {
        POWER_KEY,
        ALICE,
        JOIN_RULES_KEY,
        own_revocation("alice"),
        HOST,
        inviting,
    }


def test_what_a_state_lacks_is_left_out() -> None:
    state: State = immutables.Map({CREATE_KEY: EventId(b"c"), ALICE: EventId(b"a"), BOB: EventId(b"b")})
    assert select(fact("alice"), state) == (b"a",)
    assert select(fact("alice"), state, Version.V11) == (b"c", b"a")
    assert select(member("alice", "bob", Membership.BAN), state) == (b"a", b"b")


def test_in_our_rooms_an_event_lists_what_it_replaces() -> None:
    state: State = immutables.Map(
        {ALICE: EventId(b"a"), POWER_KEY: EventId(b"p"), RETENTION_KEY: EventId(b"r")}
    )
    replacing = fact("alice", RETENTION, "", Retention(1))
    assert select(replacing, state) == (b"p", b"a")
    assert select_in_room(replacing, state) == (b"p", b"a", b"r")
    assert select_in_room(fact("alice", POWER, "", Power()), state) == (b"p", b"a")
    assert select_in_room(fact("alice", JOIN_RULES, "", JoinRules(JoinRule.PUBLIC)), state) == (b"p", b"a")
    assert select_in_room(fact("alice"), state) == (b"p", b"a")
