"""Rooms of real node machines over simulated links."""

from __future__ import annotations

import pytest
from tests.rooms.circle import Circle, founded

from linnet.core.reasons import Reason
from linnet.rooms.commands import (
    ExamineState,
    JoinRoom,
    RoomMade,
    Sent,
    SetLevel,
    SetMembership,
    SetRule,
    SetState,
)
from linnet.rooms.event_types import JoinRule, Membership
from linnet.trace.records import Kind


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
    circle = founded("ann", "bob", "cid")
    circle.offline("cid")
    circle.say("ann", "one", "two")
    circle.say("bob", "three")
    circle.run(3.0)
    circle.offline("ann")
    circle.online("cid")
    circle.run(5.0)
    assert circle.heard("cid") == ["one", "two", "three"]


def test_two_who_went_on_apart_end_up_the_same() -> None:
    circle = founded("ann", "bob", "cid", "dan")
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
    circle = founded("ann", "bob", "r0")
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


def test_without_relays_an_event_waits_with_its_author() -> None:
    circle = founded("ann", "bob")
    circle.offline("bob")
    (event,) = circle.say("ann", "later")
    circle.run(2.0)
    assert circle.fates("ann", event) == {"bob": "pending"}
    assert circle.status("ann").unsent == 1
    circle.online("bob")
    circle.run(5.0)
    assert circle.heard("bob") == ["later"]
    assert circle.fates("ann", event) == {"bob": "delivered"}


def test_who_did_not_hear_of_its_ban_speaks_to_nobody() -> None:
    circle = founded("ann", "bob", "cid", "r0")
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
    circle = founded("ann", "bob")
    name = SetState(circle.room, "name", "", b"coffee")
    assert circle.declined("bob", name).reason is Reason.NO_POWER
    circle.get("ann", SetLevel(circle.room, 50, person=circle.person("bob")), Sent)
    circle.run(1.0)
    circle.get("bob", name, Sent)
    circle.run(1.0)
    assert circle.status("ann").name == "coffee"


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
    circle = founded("ann", "bob", "r0")
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
    circle = founded("ann", "bob", "cid", loss=0.05)
    lines = [f"line {number}" for number in range(40)]
    for number, line in enumerate(lines):
        circle.say(("ann", "bob", "cid")[number % 3], line)
    circle.run(60.0)
    for name in ("ann", "bob", "cid"):
        assert sorted(circle.heard(name)) == sorted(lines)
