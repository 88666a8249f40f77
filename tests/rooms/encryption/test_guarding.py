"""The group follows the room: devices are let in and put out, keys renewed, and every limit says its name."""

from __future__ import annotations

import copy

import pytest
from msgspec.structs import replace
from tests.rooms.circle import Devices

from linnet.core.ids import DeviceId
from linnet.core.reasons import Reason
from linnet.groups import agreement
from linnet.identity.cards import revoke
from linnet.rooms.commands import JoinRoom, RevokeInRoom, RoomMade, SendToRoom, Sent, SetMembership
from linnet.rooms.config import RoomsConfig
from linnet.rooms.encryption import group_maintenance
from linnet.rooms.event_types import Membership, Newcomers
from linnet.trace.records import Kind


def devices(*names: str, config: RoomsConfig | None = None) -> Devices:
    world = Devices(*names, config=config)
    world.found(*(name for name in names if not name.endswith("2")), newcomers=Newcomers.FROM_NOW)
    world.run(20.0)
    return world


def with_second_device() -> Devices:
    world = devices("ann", "ann2", "ben")
    ticket = world.ticket("ann")
    world.get("ann2", JoinRoom(world.room, ticket.ticket, ticket.contacts), RoomMade)
    world.read("ann2")
    world.run(20.0)
    return world


def test_every_device_of_a_person_holds_keys_of_its_own() -> None:
    world = with_second_device()
    assert world.holders("ann") == world.holders("ben") == ["ann", "ann2", "ben"]
    world.say("ann2", "from the other one")
    world.say("ben", "to both")
    world.run(5.0)
    assert world.heard("ann")[-2:] == world.heard("ann2")[-2:] == ["from the other one", "to both"]


def test_a_revoked_device_is_put_out_before_the_next_message() -> None:
    world = with_second_device()
    revocation = revoke(world.person_key("ann"), DeviceId(world.identity["ann2"].card.device), 1)
    world.get("ann", RevokeInRoom(world.room, revocation), Sent)
    world.run(0.2)
    (event,) = world.say("ben", "without the lost one")
    world.run(10.0)
    assert world.holders("ann") == world.holders("ben") == ["ann", "ben"]
    assert world.group("ann2").texts.text(event) is None
    refused = world.declined("ann2", SendToRoom(world.room, (b"and I?",)), seconds=1.0)
    assert refused.reason is Reason.CARD_REVOKED


def test_who_leaves_and_comes_back_is_another_member() -> None:
    world = devices("ann", "ben")
    before = {device: member for member, device in world.group("ann").members().items()}
    world.get("ben", SetMembership(world.room, world.person("ben"), Membership.LEAVE), Sent)
    world.run(10.0)
    assert world.holders("ann") == ["ann"]
    assert not world.group("ben").is_member
    world.join("ben", by="ann")
    world.read("ben")
    world.run(20.0)
    after = {device: member for member, device in world.group("ann").members().items()}
    assert before.keys() == after.keys()
    assert sum(before[device] == after[device] for device in before) == 1
    world.say("ann", "welcome back")
    world.run(5.0)
    assert world.heard("ben")[-1] == "welcome back"


def test_keys_are_renewed_on_a_schedule() -> None:
    world = devices("ann", "ben", config=RoomsConfig(key_update=60.0))
    began = world.network.now
    world.run(200.0)
    for name in ("ann", "ben"):
        state = world.group(name).state(world.network.now)
        assert state.healed > began + 100.0
        assert not state.owed
    world.say("ann", "still there?")
    world.run(3.0)
    assert world.heard("ben")[-1] == "still there?"


def test_a_device_that_nobody_lets_in_says_so_after_a_while() -> None:
    world = devices("ann", "r1", "ben", config=RoomsConfig(key_patience=10.0))
    world.offline("ann", "ben")
    world.online("ben")
    world.group("ben").forget(world.network.now)
    refused = world.declined("ben", SendToRoom(world.room, (b"hello?",)), seconds=20.0)
    assert refused.reason is Reason.KEY_MISSING
    assert "try again when one is online" in refused.detail


def test_no_more_waits_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_maintenance, "PARKED", 2)
    world = devices("ann", "r1", "ben")
    world.offline("ann", "ben")
    world.online("ben")
    world.group("ben").forget(world.network.now)
    for _ in range(2):
        world.network.ask(world.peer("ben"), SendToRoom(world.room, (b"one",)))
    refused = world.declined("ben", SendToRoom(world.room, (b"three",)), seconds=5.0)
    assert refused.reason is Reason.QUEUE_FULL


def test_who_lost_its_keys_is_added_anew() -> None:
    world = devices("ann", "ben", "cat")
    world.group("ben").forget(world.network.now)
    world.run(30.0)
    assert world.holders("ann") == world.holders("ben") == world.holders("cat") == ["ann", "ben", "cat"]
    world.say("ben", "here again")
    world.say("cat", "so you are")
    world.run(5.0)
    assert world.heard("ann")[-2:] == world.heard("ben")[-2:] == ["here again", "so you are"]


def test_who_cannot_be_followed_any_more_asks_to_leave_and_is_added_anew() -> None:
    world = devices("ann", "ben", "cat")
    before = world.group("ben").state(world.network.now)
    world.group("ben").keep(replace(before, desynced="a seed that does not open"))
    world.run(40.0)
    after = world.group("ben").state(world.network.now)
    assert after.me not in (None, before.me)
    assert not after.desynced
    assert world.holders("ann") == world.holders("cat") == ["ann", "ben", "cat"]
    world.say("ben", "here again")
    world.run(5.0)
    assert world.heard("cat")[-1] == "here again"


def test_an_old_copy_of_a_store_is_not_gone_on_with() -> None:
    world = devices("ann", "ben", "cat")
    world.offline("ben")
    old = copy.deepcopy(world.stores["ben"])
    world.online("ben")
    world.say("ben", "one")
    world.update_keys("ben")
    world.run(10.0)
    before = world.group("ben").state(world.network.now)
    world.offline("ben")
    world.network._hosts[world.peer("ben")].store = world.stores["ben"] = old
    world.online("ben")
    world.run(60.0)
    after = world.group("ben").state(world.network.now)
    assert after.me not in (None, before.me)
    assert Reason.DESYNCED in {record.reason for record in world.records("ben", Kind.REJECTED)}
    assert world.holders("ann") == world.holders("cat") == ["ann", "ben", "cat"]


def test_a_ban_that_state_resolution_cancels_is_healed_by_adding_again() -> None:
    world = devices("ann", "ben", "cat")
    world.get("ann", SetMembership(world.room, world.person("cat"), Membership.BAN), Sent)
    world.run(10.0)
    assert world.holders("ben") == ["ann", "ben"]
    world.get("ann", SetMembership(world.room, world.person("cat"), Membership.LEAVE), Sent)
    world.run(5.0)
    world.join("cat", by="ann")
    world.read("cat")
    world.run(20.0)
    assert world.holders("ann") == world.holders("ben") == world.holders("cat") == ["ann", "ben", "cat"]


def test_acknowledgements_are_batched() -> None:
    world = devices("ann", "ben", "cat", config=RoomsConfig(ack_delay=30.0))
    world.run(60.0)
    before = sum(record.note == "group" for record in world.records("ben", Kind.CONTROL))
    for name in ("ann", "cat"):
        world.update_keys(name)
    world.run(10.0)
    state = world.group("ben").state(world.network.now)
    assert len(state.owed) == 2
    world.run(30.0)
    assert not agreement.owes_acks(world.group("ben").state(world.network.now))
    after = sum(record.note == "group" for record in world.records("ben", Kind.CONTROL))
    assert after - before == 1
