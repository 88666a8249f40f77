from __future__ import annotations

import pytest
from msgspec import Struct
from tests.rooms.chronicle import Chronicle, person, person_key, relay_key

from linnet.core.errors import BadText, InvalidEvent
from linnet.core.reasons import Reason
from linnet.event.event import Event
from linnet.identity.cards import revoke
from linnet.rooms.auth.room_state import Fact, fact_of, person_of, relay_of, revocation_key
from linnet.rooms.event_types import (
    JOIN_RULES,
    MEMBER,
    NAME,
    PLAIN,
    POWER,
    RELAY,
    RETENTION,
    REVOCATION,
    Content,
    JoinRule,
    JoinRules,
    Member,
    Membership,
    Power,
    Relay,
    Retention,
    Revoked,
    member_key,
)

ROOM = Chronicle("founder")
ALICE = person("alice")
KEY = member_key(ALICE.author)
RELAY_KEY = relay_key("relay")
REVOKED = Revoked(revoke(person_key("alice"), ALICE.card.device, 0))
CONTENTS: dict[str, tuple[str, Content]] = {
    MEMBER: (KEY, Member(Membership.JOIN)),
    POWER: ("", Power(users={ALICE.author: 5})),
    JOIN_RULES: ("", JoinRules(JoinRule.PUBLIC)),
    RELAY: (RELAY_KEY, Relay(True, ALICE.author)),
    RETENTION: ("", Retention(1000)),
}


def event(kind: str, key: str | None, content: Struct | bytes) -> Event:
    return ROOM.make("alice", kind, key, content, [ROOM.create], time=7).events[0]


@pytest.mark.parametrize("kind", CONTENTS)
def test_a_control_event_is_understood(kind: str) -> None:
    key, content = CONTENTS[kind]
    made = event(kind, key, content)
    expected = Fact(
        made.id, kind, key, ALICE.author, ALICE.card.device, made.time, content, (ROOM.create.id,)
    )
    assert fact_of(made) == expected
    assert fact_of(made).place == (kind, key)


def test_a_revocation_stands_where_its_person_and_device_are() -> None:
    made = event(REVOCATION, ALICE.card.device.hex(), REVOKED)
    assert fact_of(made).place == (REVOCATION, revocation_key(ALICE.author, ALICE.card.device))


@pytest.mark.parametrize(
    ("kind", "key", "content"),
    [
        *((kind, None, content) for kind, (_, content) in CONTENTS.items()),
        *((kind, "other", content) for kind, (_, content) in CONTENTS.items()),
        *((kind, key, b"\xc1") for kind, (key, _) in CONTENTS.items()),
        (MEMBER, "", Member(Membership.JOIN)),
        (MEMBER, KEY.upper(), Member(Membership.JOIN)),
        (MEMBER, KEY + " ", Member(Membership.JOIN)),
        (MEMBER, KEY[:-1] + ("a" if KEY[-1] != "a" else "b"), Member(Membership.JOIN)),
        (MEMBER, RELAY_KEY, Member(Membership.JOIN)),
        (RELAY, KEY, Relay(True, ALICE.author)),
        (REVOCATION, None, REVOKED),
        (REVOCATION, "", REVOKED),
        (REVOCATION, "00" * 8, REVOKED),
        (REVOCATION, ALICE.card.device.hex().upper() + "A", REVOKED),
        ("message", "", b""),
        ("redaction", "x", b""),
        ("attachment", "x", b""),
    ],
)
def test_what_is_not_of_its_kind_is_invalid(kind: str, key: str | None, content: Struct | bytes) -> None:
    with pytest.raises(InvalidEvent) as caught:
        fact_of(event(kind, key, content))
    assert caught.value.reason is Reason.MALFORMED


def test_what_only_applications_read_has_any_key_and_body() -> None:
    named = fact_of(event(NAME, "anything", b"\xc1"))
    assert (named.key, named.content) == ("anything", PLAIN)
    said = fact_of(event("message", None, b""))
    assert said.key is None
    with pytest.raises(ValueError, match="sets no state"):
        _ = said.place


def test_keys_lead_back_to_people_and_relays() -> None:
    assert person_of(KEY) == ALICE.author
    assert relay_of(RELAY_KEY) == person("relay").peer
    with pytest.raises(BadText):
        person_of(RELAY_KEY)
    with pytest.raises(BadText):
        relay_of(RELAY_KEY.upper())
