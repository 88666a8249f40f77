"""Commands as the events that say them."""

from __future__ import annotations

import pytest
from tests.rooms.bench import Bench

from linnet.core.errors import Refused
from linnet.core.ids import EventId, PeerId
from linnet.core.reasons import Reason
from linnet.identity.text import Sort, to_text
from linnet.rooms.commands import (
    CreateRoom,
    DropRelay,
    Redact,
    SendToRoom,
    SetLevel,
    SetMembership,
    SetPower,
    SetRetention,
    SetRule,
    SetState,
)
from linnet.rooms.event_positions import Draft
from linnet.rooms.event_types import (
    JOIN_RULES,
    MEMBER,
    NAME,
    POWER,
    REDACTION,
    RELAY,
    RETENTION,
    TOPIC,
    JoinRule,
    JoinRules,
    Member,
    Membership,
    Power,
    Redaction,
    Relay,
    Retention,
    body_of,
    content_of,
    member_key,
)
from linnet.rooms.room_commands import FIRST_POWER, Governing, drafts_of, founding

EVENT = EventId(b"e" * 32)
RELAY_PEER = PeerId(b"r" * 32)


def test_a_room_begins_with_its_founder_its_levels_and_its_rule() -> None:
    bench = Bench()
    ann = bench.who("ann").author
    drafts = founding(CreateRoom("tea", "black or green", JoinRule.KNOCK), ann)
    assert drafts == [
        Draft(MEMBER, member_key(ann), body_of(Member(Membership.JOIN))),
        Draft(POWER, "", body_of(FIRST_POWER)),
        Draft(JOIN_RULES, "", body_of(JoinRules(JoinRule.KNOCK))),
        Draft(NAME, "", b"tea"),
        Draft(TOPIC, "", b"black or green"),
    ]
    assert len(founding(CreateRoom(), ann)) == 3


def test_each_command_is_one_event() -> None:
    bench = Bench()
    room, bob = bench.id, bench.who("bob").author
    expected: list[tuple[Governing, Draft]] = [
        (
            SetMembership(room, bob, Membership.BAN, "rude"),
            Draft(MEMBER, member_key(bob), body_of(Member(Membership.BAN, "rude"))),
        ),
        (SetPower(room, Power(ban=9)), Draft(POWER, "", body_of(Power(ban=9)))),
        (SetRule(room, JoinRule.PUBLIC), Draft(JOIN_RULES, "", body_of(JoinRules(JoinRule.PUBLIC)))),
        (SetState(room, "color", "wall", b"red"), Draft("color", "wall", b"red")),
        (SetRetention(room, 1.0), Draft(RETENTION, "", body_of(Retention(1000)))),
        (Redact(room, EVENT, "oops"), Draft(REDACTION, None, body_of(Redaction(EVENT, "oops")))),
    ]
    for command, draft in expected:
        assert drafts_of(command, bench.room.view) == [draft]


def test_messages_are_one_event_each() -> None:
    bench = Bench()
    drafts = drafts_of(SendToRoom(bench.id, (b"a", b"b"), "poll"), bench.room.view)
    assert drafts == [Draft("poll", None, b"a"), Draft("poll", None, b"b")]


@pytest.mark.parametrize("kind", [MEMBER, POWER, RELAY, REDACTION])
def test_what_has_a_command_of_its_own_is_not_set_otherwise(kind: str) -> None:
    bench = Bench()
    for command in (SetState(bench.id, kind, "", b""), SendToRoom(bench.id, (b"",), kind)):
        with pytest.raises(Refused) as error:
            drafts_of(command, bench.room.view)
        assert error.value.reason is Reason.NOT_ALLOWED


def power_of(bench: Bench, command: SetLevel) -> Power:
    (draft,) = drafts_of(command, bench.room.view)
    power = content_of(draft.kind, draft.body)
    assert isinstance(power, Power)
    return power


def test_a_level_changes_and_all_others_stay() -> None:
    bench = Bench()
    bob = bench.who("bob").author
    assert power_of(bench, SetLevel(bench.id, 50, person=bob)).users == {bob: 50}
    assert power_of(bench, SetLevel(bench.id, 50, person=bob)).events == FIRST_POWER.events
    assert power_of(bench, SetLevel(bench.id, 75, kind="ban")).ban == 75
    assert power_of(bench, SetLevel(bench.id, 75, kind="poll")).events == {**FIRST_POWER.events, "poll": 75}
    assert NAME not in power_of(bench, SetLevel(bench.id, None, kind=NAME)).events
    bench.say(SetLevel(bench.id, 50, person=bob))
    assert power_of(bench, SetLevel(bench.id, None, person=bob)).users == {}


@pytest.mark.parametrize("both", [True, False])
def test_a_level_is_of_a_person_or_of_a_kind(both: bool) -> None:
    bench = Bench()
    command = SetLevel(bench.id, 1, bench.who("bob").author if both else None, "ban" if both else None)
    with pytest.raises(Refused) as error:
        drafts_of(command, bench.room.view)
    assert error.value.reason is Reason.MALFORMED


def test_a_relay_is_dropped_and_its_person_with_its_last() -> None:
    bench = Bench()
    with pytest.raises(Refused) as error:
        drafts_of(DropRelay(bench.id, RELAY_PEER), bench.room.view)
    assert error.value.reason is Reason.NOT_A_RELAY
    bench.join("rex")
    person, other = bench.who("rex").author, PeerId(b"s" * 32)
    for peer in (RELAY_PEER, other):
        bench.govern(RELAY, to_text(Sort.DEVICE, peer), body_of(Relay(True, person, ())))
    gone = [Draft(RELAY, to_text(Sort.DEVICE, RELAY_PEER), body_of(Relay(False, person, ())))]
    assert drafts_of(DropRelay(bench.id, RELAY_PEER), bench.room.view) == gone
    bench.govern(RELAY, to_text(Sort.DEVICE, other), body_of(Relay(False, person, ())))
    leave = Draft(MEMBER, member_key(person), body_of(Member(Membership.LEAVE)))
    assert drafts_of(DropRelay(bench.id, RELAY_PEER), bench.room.view) == [*gone, leave]
