"""Rooms of real node machines over simulated links."""

from __future__ import annotations

import pytest
from tests.rooms.circle import Circle

from linnet.core.reasons import Reason
from linnet.delivery.commands import Declined
from linnet.rooms.commands import (
    ExamineState,
    JoinRoom,
    Redact,
    SendToRoom,
    SetLevel,
    SetMembership,
    SetRule,
    SetState,
)
from linnet.rooms.content import JoinRule, Membership
from linnet.rooms.results import RoomMade, Sent
from linnet.trace.records import Kind


def test_what_one_says_all_hear() -> None:
    circle = Circle("ann", "bob", "cid")
    circle.found("ann", "bob", "cid")
    circle.say("ann", "good morning")
    circle.say("cid", "tea?", "or coffee?")
    circle.run(2.0)
    for name in ("ann", "bob", "cid"):
        assert circle.heard(name) == ["good morning", "tea?", "or coffee?"]
    assert len({circle.state(name).digest for name in ("ann", "bob", "cid")}) == 1


def test_a_newcomer_is_shown_the_history() -> None:
    circle = Circle("ann", "bob")
    circle.found("ann")
    circle.say("ann", *(f"line {number}" for number in range(300)))
    circle.join("bob", by="ann")
    circle.read("bob")
    circle.run(5.0)
    assert circle.heard("bob") == [f"line {number}" for number in range(300)]
    assert circle.status("bob").missing == 0


def test_who_was_away_catches_up_from_a_member_without_any_relay() -> None:
    circle = Circle("ann", "bob", "cid")
    circle.found("ann", "bob", "cid")
    circle.offline("cid")
    circle.say("ann", "one", "two")
    circle.say("bob", "three")
    circle.run(3.0)
    circle.offline("ann")
    circle.online("cid")
    circle.run(5.0)
    assert circle.heard("cid") == ["one", "two", "three"]


def test_two_who_went_on_apart_end_up_the_same() -> None:
    circle = Circle("ann", "bob", "cid", "dan")
    circle.found("ann", "bob", "cid", "dan")
    halves = [[circle.peer("ann"), circle.peer("bob")], [circle.peer("cid"), circle.peer("dan")]]
    circle.network.partition(halves)
    for number in range(20):
        circle.say("ann", f"left {number}")
        circle.say("cid", f"right {number}")
    circle.run(5.0)
    circle.network.heal()
    circle.run(40.0)
    for name in ("ann", "bob", "cid", "dan"):
        assert sorted(circle.heard(name)) == sorted(
            [f"left {number}" for number in range(20)] + [f"right {number}" for number in range(20)]
        )
        assert circle.status(name).waiting == 0


def test_a_relay_holds_events_for_who_is_away() -> None:
    circle = Circle("ann", "bob", "r0")
    circle.found("ann", "bob", "r0")
    circle.offline("bob")
    (event,) = circle.say("ann", "while you were out")
    circle.run(2.0)
    assert circle.fates("ann", event) == {"bob": "at_relay"}
    circle.offline("ann")
    circle.online("bob")
    circle.run(3.0)
    assert circle.heard("bob") == ["while you were out"]
    circle.online("ann")
    circle.run(5.0)
    assert circle.fates("ann", event) == {"bob": "delivered"}


def test_relays_pass_events_on_to_each_other() -> None:
    circle = Circle("ann", "bob", "r0", "r1")
    circle.found("ann", "bob", "r0", "r1")
    circle.offline("bob")
    circle.say("ann", "hello")
    circle.run(2.0)
    for relay in ("r0", "r1"):
        stored = [record.note for record in circle.records(relay, Kind.STORED)]
        assert stored.count("message") == 1
    used = circle.status("ann").relays
    chosen = next(circle.name(relay.relay) for relay in used if relay.chosen)
    circle.offline("ann", chosen)
    circle.online("bob")
    circle.run(20.0)
    assert circle.heard("bob") == ["hello"]


def test_without_relays_an_event_waits_with_its_author() -> None:
    circle = Circle("ann", "bob")
    circle.found("ann", "bob")
    circle.offline("bob")
    (event,) = circle.say("ann", "later")
    circle.run(2.0)
    assert circle.fates("ann", event) == {"bob": "pending"}
    assert circle.status("ann").unsent == 1
    circle.online("bob")
    circle.run(5.0)
    assert circle.heard("bob") == ["later"]
    assert circle.fates("ann", event) == {"bob": "delivered"}


def test_who_is_banned_is_told_nothing_any_more() -> None:
    circle = Circle("ann", "bob", "cid", "r0")
    circle.found("ann", "bob", "cid", "r0")
    circle.say("ann", "before")
    circle.run(2.0)
    circle.get("ann", SetMembership(circle.room, circle.person("bob"), Membership.BAN), Sent)
    circle.run(1.0)
    circle.say("ann", "after")
    circle.run(3.0)
    assert circle.heard("bob") == ["before"]
    assert circle.heard("cid") == ["before", "after"]
    assert circle.declined("bob", SendToRoom(circle.room, (b"x",))).reason is Reason.BANNED
    circle.offline("bob")
    circle.online("bob")
    circle.run(10.0)
    assert circle.heard("bob") == ["before"]


def test_who_did_not_hear_of_its_ban_speaks_to_nobody() -> None:
    circle = Circle("ann", "bob", "cid", "r0")
    circle.found("ann", "bob", "cid", "r0")
    circle.offline("bob")
    circle.get("ann", SetMembership(circle.room, circle.person("bob"), Membership.BAN), Sent)
    circle.run(2.0)
    circle.network.partition([[circle.peer("bob")]])
    circle.online("bob")
    circle.say("bob", "can you hear me")
    circle.network.heal()
    circle.run(20.0)
    for name in ("ann", "cid"):
        assert circle.heard(name) == []
    assert "message" not in [record.note for record in circle.records("r0", Kind.STORED)]
    assert len({circle.state(name).digest for name in ("ann", "cid")}) == 1


def test_levels_are_asked_for() -> None:
    circle = Circle("ann", "bob")
    circle.found("ann", "bob")
    name = SetState(circle.room, "name", "", b"coffee")
    assert circle.declined("bob", name).reason is Reason.NO_POWER
    circle.get("ann", SetLevel(circle.room, 50, person=circle.person("bob")), Sent)
    circle.run(1.0)
    circle.get("bob", name, Sent)
    circle.run(1.0)
    assert circle.status("ann").name == "coffee"


def test_an_event_is_taken_back_by_its_author_only_or_a_moderator() -> None:
    circle = Circle("ann", "bob", "cid")
    circle.found("ann", "bob", "cid", read=False)
    (first,) = circle.say("ann", "oops")
    (second,) = circle.say("bob", "hm")
    circle.run(1.0)
    circle.get("bob", Redact(circle.room, first), Sent)
    circle.get("bob", Redact(circle.room, second), Sent)
    circle.run(1.0)
    circle.read("cid")
    circle.run(1.0)
    assert [body for body in circle.heard("cid") if body] == ["oops"]
    circle.get("ann", Redact(circle.room, first), Sent)
    circle.run(1.0)
    circle.items["cid"].clear()
    circle.offline("cid")
    circle.online("cid")
    circle.run(1.0)
    assert circle.rooms("cid")._registry.get(circle.room).parts.readers.redacted.keys() == {first, second}  # type: ignore[union-attr]


@pytest.mark.parametrize("by", ["nobody", "expired", "other room"])
def test_who_has_no_invitation_stays_outside(by: str) -> None:
    circle = Circle("ann", "bob")
    circle.found("ann")
    made = circle.ticket("ann", lasts=1.0 if by == "expired" else 3600.0)
    room = circle.room
    ticket = None if by == "nobody" else made.ticket
    if by == "expired":
        circle.run(1000.0)
    if by == "other room":
        circle.found("ann")
        made = circle.ticket("ann")
        ticket = made.ticket
    declined = circle.declined("bob", JoinRoom(room, ticket, made.contacts, 5.0))
    assert declined.reason in (Reason.NOT_INVITED, Reason.INVITATION_EXPIRED)


def test_who_is_invited_by_name_needs_no_ticket() -> None:
    circle = Circle("ann", "bob")
    circle.found("ann")
    circle.get("ann", SetMembership(circle.room, circle.person("bob"), Membership.INVITE), Sent)
    circle.get("bob", JoinRoom(circle.room, None, (circle.contact("ann"),)), RoomMade)
    circle.run(1.0)
    assert [member.membership for member in circle.state("ann").members] == [Membership.JOIN] * 2


def test_anyone_joins_a_public_room_and_knocks_at_one_that_asks_for_it() -> None:
    circle = Circle("ann", "bob", "cid")
    circle.found("ann", rule=JoinRule.PUBLIC)
    circle.get("bob", JoinRoom(circle.room, None, (circle.contact("ann"),)), RoomMade)
    circle.get("ann", SetRule(circle.room, JoinRule.KNOCK), Sent)
    knock = JoinRoom(circle.room, None, (circle.contact("ann"),), knock=True)
    circle.get("cid", knock, RoomMade)
    circle.run(2.0)
    members = {each.person: each.membership for each in circle.state("ann").members}
    assert members[circle.person("bob")] is Membership.JOIN
    assert members[circle.person("cid")] is Membership.KNOCK
    assert circle.ask("cid", ExamineState(circle.room)) is not None


def test_a_relay_lets_someone_in_while_all_members_are_away() -> None:
    circle = Circle("ann", "bob", "r0")
    circle.found("ann", "r0")
    circle.say("ann", "welcome")
    circle.run(2.0)
    made = circle.ticket("ann")
    circle.offline("ann")
    circle.get("bob", JoinRoom(circle.room, made.ticket, made.contacts), RoomMade)
    circle.read("bob")
    circle.run(5.0)
    assert circle.heard("bob") == ["welcome"]
    circle.say("bob", "thank you")
    circle.run(1.0)
    circle.offline("bob")
    circle.online("ann")
    circle.run(5.0)
    assert circle.heard("ann") == ["welcome", "thank you"]


def test_everything_is_there_after_a_crash_of_all() -> None:
    circle = Circle("ann", "bob", "r0")
    circle.found("ann", "bob", "r0")
    (event,) = circle.say("ann", "still here")
    circle.run(3.0)
    before = circle.state("ann").digest
    circle.offline("ann", "bob", "r0")
    circle.run(1.0)
    circle.online("ann", "bob", "r0")
    circle.run(10.0)
    assert circle.state("ann").digest == circle.state("bob").digest == before
    circle.say("bob", "and I")
    circle.run(3.0)
    assert circle.heard("ann") == ["still here", "and I"]
    assert circle.fates("ann", event) == {"bob": "delivered"}


def test_a_lossy_network_loses_nothing() -> None:
    circle = Circle("ann", "bob", "cid", loss=0.05)
    circle.found("ann", "bob", "cid")
    lines = [f"line {number}" for number in range(40)]
    for number, line in enumerate(lines):
        circle.say(("ann", "bob", "cid")[number % 3], line)
    circle.run(60.0)
    for name in ("ann", "bob", "cid"):
        assert sorted(circle.heard(name)) == sorted(lines)


def test_a_room_that_is_not_ours_has_no_commands() -> None:
    circle = Circle("ann")
    circle.found("ann")
    other = type(circle.room)(bytes(32))
    declined = circle.ask("ann", SendToRoom(other, (b"x",)))
    assert isinstance(declined, Declined)
    assert declined.reason is Reason.UNKNOWN_ROOM
