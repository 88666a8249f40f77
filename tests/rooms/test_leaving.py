"""Leaving a room while nobody is in reach: others hear of it when somebody is, whatever happens meanwhile."""

from __future__ import annotations

import pytest
from tests.rooms.circle import Circle, Devices, founded

from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.machine.commands import Declined
from linnet.rooms.commands import (
    ExamineRooms,
    JoinRoom,
    LeaveRoom,
    RoomLeft,
    RoomMade,
    RoomsAre,
    SendToRoom,
    Sent,
)
from linnet.rooms.config import RoomsConfig
from linnet.rooms.event_types import Membership, Newcomers
from linnet.trace.records import Kind


def membership(circle: Circle, at: str, of: str) -> Membership:
    return next(each.membership for each in circle.state(at).members if each.person == circle.person(of))


@pytest.mark.parametrize("newcomers", [None, Newcomers.FROM_NOW])
@pytest.mark.parametrize("restarts", [0, 2])
def test_who_leaves_alone_is_out_when_the_others_are_back(restarts: int, newcomers: Newcomers | None) -> None:
    circle = founded("ann", "bob", "cid", newcomers=newcomers)
    circle.offline("ann", "cid")
    circle.run(1.0)
    circle.ask("bob", LeaveRoom(circle.room))
    assert circle.get("bob", ExamineRooms(), RoomsAre).rooms == ()
    for _ in range(restarts):
        circle.run(5.0)
        circle.offline("bob")
        circle.online("bob")
    assert circle.get("bob", ExamineRooms(), RoomsAre).rooms == ()
    circle.run(300.0)
    circle.online("ann")
    circle.run(120.0)
    assert membership(circle, "ann", "bob") is Membership.LEAVE
    circle.online("cid")
    circle.run(30.0)
    assert membership(circle, "cid", "bob") is Membership.LEAVE
    circle.items["bob"].clear()
    circle.get("ann", SendToRoom(circle.room, (b"among us",)), Sent)
    circle.run(10.0)
    assert circle.heard("bob") == []
    assert circle.rooms("bob")._registry.get(circle.room) is None


def test_a_relay_that_comes_back_is_enough() -> None:
    circle = Circle("ann", "bob", "r0")
    circle.found("ann", "r0", "bob")
    circle.offline("ann", "r0")
    circle.run(1.0)
    circle.ask("bob", LeaveRoom(circle.room))
    circle.offline("bob")
    circle.online("bob")
    circle.run(60.0)
    circle.online("r0")
    circle.run(120.0)
    assert circle.rooms("bob")._registry.get(circle.room) is None
    circle.offline("bob")
    circle.online("ann")
    circle.run(30.0)
    assert membership(circle, "ann", "bob") is Membership.LEAVE


def test_the_answer_says_who_will_hear_of_it_and_the_list_of_departures_until_when() -> None:
    circle = founded("ann", "bob", "cid", config=RoomsConfig(leave_patience=1000.0))
    circle.offline("ann", "cid")
    circle.run(1.0)
    left = circle.get("bob", LeaveRoom(circle.room), RoomLeft)
    assert (left.members, left.neighbors, left.relays, left.reason) == (2, 0, (), None)
    assert left.until is not None
    (departure,) = circle.get("bob", ExamineRooms(), RoomsAre).departures
    assert (departure.room, departure.name, departure.members) == (circle.room, "tea", 2)
    assert departure.until == left.until == departure.since + 1000.0
    assert circle.declined("bob", LeaveRoom(circle.room)).reason is Reason.UNKNOWN_ROOM
    circle.online("cid")
    circle.run(60.0)
    assert circle.get("bob", ExamineRooms(), RoomsAre) == RoomsAre(())


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(("seconds", "is_heard"), [(-1.0, True), (1.0, False)])
def test_it_is_given_up_in_the_end_with_a_record(seconds: float, is_heard: bool, restarts: bool) -> None:
    config = RoomsConfig(leave_patience=600.0)
    circle = founded("ann", "bob", config=config)
    circle.offline("ann")
    circle.run(1.0)
    circle.get("bob", LeaveRoom(circle.room), RoomLeft)
    begun = circle.network.elapsed
    if restarts:
        circle.offline("bob")
        circle.online("bob")
    circle.run(begun + config.leave_patience + seconds - circle.network.elapsed)
    assert (circle.rooms("bob")._registry.get(circle.room) is not None) == is_heard
    given_up = [(each.reason, each.note) for each in circle.records("bob", Kind.EXPIRED)]
    note = "nobody was in reach who should hear that we left"
    assert given_up == ([] if is_heard else [(Reason.TIMEOUT, note)])
    assert circle.get("bob", ExamineRooms(), RoomsAre).rooms == ()


def test_who_comes_back_before_anybody_heard_is_in_the_room_again() -> None:
    circle = founded("ann", "bob")
    ticket = circle.ticket("ann")
    circle.offline("ann")
    circle.run(1.0)
    circle.get("bob", LeaveRoom(circle.room), RoomLeft)
    patience = 5.0
    declined = circle.declined("bob", JoinRoom(circle.room, ticket.ticket, ticket.contacts, patience))
    assert declined.reason is Reason.TIMEOUT
    assert circle.get("bob", ExamineRooms(), RoomsAre).rooms == ()
    assert len(circle.get("bob", ExamineRooms(), RoomsAre).departures) == 1
    request = circle.network.ask(
        circle.peer("bob"), JoinRoom(circle.room, ticket.ticket, ticket.contacts, 60.0)
    )
    circle.online("ann")
    circle.run(60.0)
    assert isinstance(circle.network.answers[request], RoomMade)
    assert membership(circle, "ann", "bob") is Membership.JOIN
    assert circle.status("bob").membership is Membership.JOIN
    assert circle.get("bob", ExamineRooms(), RoomsAre).departures == ()
    circle.offline("bob")
    circle.online("bob")
    assert circle.status("bob").membership is Membership.JOIN


def test_who_comes_back_and_is_refused_has_left_all_the_same() -> None:
    circle = founded("ann", "bob", "cid")
    circle.offline("ann", "cid")
    circle.run(1.0)
    circle.get("bob", LeaveRoom(circle.room), RoomLeft)
    join = JoinRoom(circle.room, None, (circle.contact("ann"),), 60.0)
    request = circle.network.ask(circle.peer("bob"), join)
    circle.run(1.0)
    circle.online("cid")
    circle.online("ann")
    circle.run(90.0)
    assert isinstance(circle.network.answers[request], Declined)
    assert membership(circle, "ann", "bob") is Membership.LEAVE
    assert circle.rooms("bob")._registry.get(circle.room) is None


def test_who_cannot_say_that_it_leaves_is_told_why_and_stays() -> None:
    circle = founded("ann", "bob")
    room = circle.room_at("bob")
    room.memory.held[EventId(bytes(32))] = None
    assert circle.declined("bob", LeaveRoom(circle.room)).reason is Reason.DAMAGED
    assert circle.status("bob").membership is Membership.JOIN


def test_a_device_that_left_lets_another_of_its_person_be_that_has_joined_since() -> None:
    circle = Devices("ann", "bob", "bob2")
    circle.found("ann", "bob")
    ticket = circle.ticket("ann")
    circle.network.ask(circle.peer("bob"), LeaveRoom(circle.room))
    circle.run(0.015)
    circle.offline("bob")  # It has told ann, and not heard that she knows.
    assert membership(circle, "ann", "bob") is Membership.LEAVE
    circle.get("bob2", JoinRoom(circle.room, ticket.ticket, ticket.contacts, 60.0), RoomMade)
    circle.run(5.0)
    circle.online("bob")
    circle.run(120.0)
    assert circle.rooms("bob")._registry.get(circle.room) is None
    assert circle.get("bob", ExamineRooms(), RoomsAre).departures == ()
    for name in ("ann", "bob2"):
        assert membership(circle, name, "bob") is Membership.JOIN
    circle.read("bob2")
    circle.say("ann", "hello")
    circle.run(5.0)
    assert circle.heard("bob2")[-1:] == ["hello"]
