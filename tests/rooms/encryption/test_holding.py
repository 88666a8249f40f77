"""Who should hold the keys of a room, who does, and what is kept of that."""

from __future__ import annotations

from tests.rooms.encryption.test_guarding import devices

from linnet.core.ids import DeviceId
from linnet.groups.ids import Device
from linnet.rooms.commands import SetMembership
from linnet.rooms.content import Membership
from linnet.rooms.encryption.holding import Holding
from linnet.rooms.results import Sent


def test_who_is_banned_may_hold_none_and_is_surplus_until_it_is_removed() -> None:
    world = devices("ann", "ben", "cat")
    cat = Device(world.person("cat"), DeviceId(world.identity["cat"].card.device))
    ann = world.secrecy("ann")
    assert ann.may_hold(cat)
    assert ann.surplus() == []
    (member,) = (member for member, device in ann.members().items() if device == cat)
    world.get("ann", SetMembership(world.room, cat.author, Membership.BAN), Sent)
    assert not ann.may_hold(cat)
    assert ann.surplus() == [member]
    world.run(10.0)
    assert (ann.surplus(), ann.missing()) == ([], [])
    assert cat not in ann.members().values()


def test_who_told_new_prekeys_is_surplus_by_its_old_ones_then_missing() -> None:
    world = devices("ann", "ben", "cat")
    ann, ben = world.secrecy("ann"), world.secrecy("ben")
    before = ann.bundle(ben.ours)
    assert before is not None
    assert ann.keyring.is_used(before.identity)
    ben.forget(world.network.now)
    world.run(30.0)
    after = ann.bundle(ben.ours)
    assert after is not None
    assert after.identity != before.identity
    assert ann.keyring.is_used(after.identity)
    assert ann.bundle(Device(world.person("cat"), DeviceId(b"no such!"))) is None


def test_the_state_is_the_same_after_a_restart() -> None:
    world = devices("ann", "ben")
    ann, now = world.secrecy("ann"), world.network.now
    again = Holding(world.room, ann._context, ann._control, ann._memory, ann._out)
    assert again.known_state == ann.known_state == again.state(now)
    assert again.members() == ann.members()
    version = again.version
    again.keep_keys(again.state(now))
    assert again.version == version
    again.keep(again.state(now))
    assert again.version == version + 1
