from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import InvalidEvent
from linnet.core.ids import AuthorId, EventId
from linnet.core.reasons import Reason
from linnet.identity.text import Sort, from_text
from linnet.rooms.event_types import (
    CONTROL_KINDS,
    LEVEL_MOST,
    MEMBER,
    PLAIN,
    POWER,
    Create,
    JoinRules,
    Member,
    Plain,
    Power,
    Redaction,
    Relay,
    Retention,
    Revoked,
    body_of,
    content_of,
    member_key,
    redaction_of,
)
from linnet.testing.strategies import values

CONTENTS = {
    "create": Create,
    "member": Member,
    "power": Power,
    "join_rules": JoinRules,
    "relay": Relay,
    "retention": Retention,
    "revocation": Revoked,
}
people = st.binary(min_size=32, max_size=32).map(AuthorId)


@pytest.mark.parametrize("kind", sorted(CONTENTS))
def test_what_is_said_is_understood(kind: str) -> None:
    @given(values(CONTENTS[kind]))
    def check(content: msgspec.Struct) -> None:
        assert content_of(kind, body_of(content)) == content

    check()


@pytest.mark.parametrize("kind", sorted(CONTENTS))
@pytest.mark.parametrize("body", [b"", b"\x00", b"\xc1", b"\x91\xff", b"\x90", b"hello"])
def test_what_is_none_of_its_kind_is_refused(kind: str, body: bytes) -> None:
    if kind == POWER and body == b"\x90":
        assert content_of(kind, body) == Power()
        return
    with pytest.raises(InvalidEvent) as caught:
        content_of(kind, body)
    assert caught.value.reason is Reason.MALFORMED


def test_what_only_applications_read_is_not_looked_at() -> None:
    assert content_of("name", b"\xc1") is PLAIN
    assert isinstance(content_of("message", b""), Plain)


@pytest.mark.parametrize(
    "level",
    [True, 1.0, "50", None, LEVEL_MOST + 1, -LEVEL_MOST - 1],
    ids=["bool", "float", "text", "nil", "+", "-"],
)
def test_a_level_is_a_number_of_53_bits(level: object) -> None:
    body = msgspec.msgpack.encode([{b"p" * 32: level}])
    with pytest.raises(InvalidEvent):
        content_of(POWER, body)


@given(
    st.dictionaries(people, st.integers(-10, 10)), st.dictionaries(st.text(max_size=8), st.integers(-10, 10))
)
def test_equal_levels_have_one_body(users: dict[AuthorId, int], events: dict[str, int]) -> None:
    backwards = Power(users=dict(reversed(users.items())), events=dict(reversed(events.items())))
    assert body_of(Power(users=users, events=events)) == body_of(backwards)


def test_a_redaction_names_what_it_takes_back() -> None:
    redaction = Redaction(EventId(b"e" * 32), "spam")
    assert redaction_of(body_of(redaction)) == redaction
    with pytest.raises(InvalidEvent):
        redaction_of(b"\x91\x01")


@given(people)
def test_the_key_of_a_membership_is_the_person(person: AuthorId) -> None:
    assert from_text(Sort.PERSON, member_key(person)) == person


def test_every_control_kind_has_a_content() -> None:
    assert set(CONTENTS) == CONTROL_KINDS


@pytest.mark.parametrize(("kind", "content"), [(POWER, [{b"short": 1}]), (MEMBER, ["owner"]), (MEMBER, [1])])
def test_levels_are_of_people_and_memberships_are_those_that_there_are(kind: str, content: object) -> None:
    with pytest.raises(InvalidEvent) as caught:
        content_of(kind, msgspec.msgpack.encode(content))
    assert caught.value.reason is Reason.MALFORMED
