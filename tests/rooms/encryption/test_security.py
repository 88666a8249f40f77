"""What `ExamineSecurity` tells of real machines in rooms."""

from __future__ import annotations

import pickle

from tests.rooms.circle import Circle, founded

from linnet.core.ids import DeviceId
from linnet.core.reasons import Reason
from linnet.groups.labels import Device
from linnet.rooms.commands import (
    ExamineSecurity,
    Hindrance,
    JoinRoom,
    KeyStanding,
    SecurityIs,
    Sent,
    SetMembership,
)
from linnet.rooms.encryption.room_group import RoomGroup
from linnet.rooms.event_types import JoinRule, Membership, Newcomers
from linnet.rooms.room_status import security_of, theft_of, why_not


def security(world: Circle, name: str) -> SecurityIs:
    return world.get(name, ExamineSecurity(world.room), SecurityIs)


def standings(world: Circle, name: str) -> dict[str, list[KeyStanding]]:
    """How the devices stand, by name."""
    names = {identity.author: known for known, identity in world.identity.items()}
    found: dict[str, list[KeyStanding]] = {}
    for each in security(world, name).devices:
        found.setdefault(names[each.person], []).append(each.standing)
    return found


def circle(*names: str, newcomers: Newcomers = Newcomers.FROM_NOW) -> Circle:
    world = Circle(*names)
    world.found(*names, newcomers=newcomers)
    world.run(20.0)
    return world


def test_everyone_holds_keys_and_nothing_is_pending() -> None:
    world = circle("ann", "ben", "cat", "r1")
    world.say("ann", "one")
    world.run(30.0)
    found = security(world, "ben")
    assert (found.newcomers, found.is_member, found.unread) == (Newcomers.FROM_NOW, True, ())
    assert standings(world, "ben") == {name: [KeyStanding.HOLDS] for name in ("ann", "ben", "cat")}
    assert [device.ours for device in found.devices] == [True, False, False]
    assert all(device.age is not None and 0 <= device.age < 120 for device in found.devices)
    assert all(device.pending == 0 for device in found.devices)
    assert found.hindrances == ()
    week = 7 * 86_400.0
    assert found.renewal is not None
    assert week - 120 < found.renewal <= week
    assert found.theft is not None
    assert (found.theft.messages, found.theft.shared_keys, found.theft.follows) == (1, 0, 2)
    assert found.theft.member_secrets == 0


def test_a_public_room_has_no_keys_to_tell_of() -> None:
    world = founded("ann", "ben", rule=JoinRule.PUBLIC)
    assert security(world, "ben") == SecurityIs(world.room, None)


def test_looking_changes_nothing() -> None:
    world = circle("ann", "ben")
    before = pickle.dumps(world.stores["ben"].cells._spaces)
    security(world, "ben")
    assert pickle.dumps(world.stores["ben"].cells._spaces) == before


def test_who_is_not_let_in_yet_is_told_so_and_why() -> None:
    world = Circle("ann", "ben")
    world.found("ann", newcomers=Newcomers.FROM_NOW)
    world.join("ben", by="ann")
    found = security(world, "ben")
    assert not found.is_member
    assert found.hindrances == (Hindrance.NOT_LET_IN,)
    assert found.renewal is None
    assert [(each.person, each.standing, each.ours) for each in found.devices] == [
        (world.person(name), KeyStanding.TO_BE_ADDED if name == "ben" else KeyStanding.UNKNOWN, name == "ben")
        for name in sorted(("ann", "ben"), key=world.person)
    ]
    world.run(20.0)
    assert security(world, "ben").hindrances == ()


def test_who_joined_and_is_not_let_in_is_listed_with_the_reason() -> None:
    world = Circle("ann", "ben")
    world.found("ann", newcomers=Newcomers.FROM_NOW)
    ticket = world.ticket("ann")
    world.network.ask(world.peer("ben"), JoinRoom(world.room, ticket.ticket, ticket.contacts))
    room = world.room_at("ann")
    seen: list[KeyStanding] = []
    while KeyStanding.HOLDS not in seen:
        world.run(0.001)
        seen += [
            each.standing
            for each in security_of(room, world.network.now).devices
            if each.person == world.person("ben")
        ]
    assert list(dict.fromkeys(seen)) == [KeyStanding.NO_PREKEYS, KeyStanding.HOLDS]


def test_why_a_device_that_told_prekeys_holds_no_keys() -> None:
    world = circle("ann", "ben")
    group = world.group("ann")
    ben = Device(world.person("ben"), world.identity["ben"].card.device)
    assert why_not(group, ben, world.network.now) is KeyStanding.USED_PREKEYS
    stranger = Device(ben.author, DeviceId(bytes(8)))
    assert why_not(group, stranger, world.network.now) is KeyStanding.NO_PREKEYS
    group.keyring._cells.delete(group.keyring._used, bundle_identity(group, ben))
    assert why_not(group, ben, world.network.now) is KeyStanding.TO_BE_ADDED
    assert why_not(group, ben, world.network.now + 30 * 86_400) is KeyStanding.EXPIRED_PREKEYS


def bundle_identity(group: RoomGroup, device: Device) -> bytes:
    bundle = group.bundle(device)
    assert bundle is not None
    return bundle.identity


def test_acknowledgements_of_who_is_away_are_pending_with_their_secrets() -> None:
    world = circle("ann", "ben", "cat", "dan")
    world.offline("cat")
    world.get("ann", SetMembership(world.room, world.person("dan"), Membership.BAN), Sent)
    world.run(20.0)
    found = security(world, "ann")
    pending = {device.person: device.pending for device in found.devices}
    assert pending[world.person("cat")] >= 1
    assert pending[world.person("ben")] == 0
    assert found.theft is not None
    assert found.theft.member_secrets >= 1
    assert "dan" not in standings(world, "ann")
    world.online("cat")
    world.run(30.0)
    assert {device.pending for device in security(world, "ann").devices} == {0}


def test_what_cannot_be_read_is_counted_with_its_reason() -> None:
    world = Circle("ann", "ben", "cat")
    world.found("ann", "ben", newcomers=Newcomers.FROM_NOW)
    world.run(20.0)
    world.say("ann", "said earlier", "and more")
    world.run(3.0)
    world.join("cat", by="ann")
    world.run(20.0)
    assert security(world, "cat").unread == ((Reason.BEFORE_JOINING, 2),)


def test_keys_that_are_kept_for_newcomers_are_a_thiefs_as_well() -> None:
    world = circle("ann", "ben", newcomers=Newcomers.SHARED)
    world.say("ann", "one", "two")
    world.run(5.0)
    theft = security(world, "ben").theft
    assert theft is not None
    assert (theft.messages, theft.shared_keys) == (2, 2)


def test_without_any_state_only_what_is_kept_can_be_read() -> None:
    theft = theft_of(None, 3, 1)
    assert (theft.messages, theft.late_keys, theft.member_secrets, theft.follows) == (3, 0, 0, 0)
