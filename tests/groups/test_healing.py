"""When a new seed must come before our next message."""

from __future__ import annotations

import hashlib

from linnet.core.ids import AuthorId, DeviceId, EventId
from linnet.groups import healing, membership
from linnet.groups.ids import Device, MemberId
from linnet.groups.membership import EMPTY, History, Member


def _op(name: str) -> EventId:
    return EventId(hashlib.sha256(name.encode()).digest())


def _mid(name: str) -> MemberId:
    return MemberId(name.encode().ljust(16, b"."))


def _member(name: str, op: str) -> Member:
    device = Device(AuthorId(name.encode().ljust(32, b".")), DeviceId(name.encode().ljust(8, b".")))
    return Member(_mid(name), device, name.encode().ljust(32, b"i"), _op(op))


def _group(names: str) -> History:
    return membership.create(EMPTY, _op("create"), [_member(name, "create") for name in names])


def test_c7_a_newcomer_without_the_seed_of_a_removal_must_heal() -> None:
    adder = membership.add(_group("ABX"), _op("add D"), _mid("B"), _member("D", "add D"))
    newcomer = healing.welcomed(adder, healthy=True)
    assert not healing.needs_heal(newcomer, adder)
    after = membership.remove(adder, _op("remove X"), _mid("A"), [_mid("X")])
    assert healing.needs_heal(newcomer, after)
    assert not healing.needs_heal(healing.incorporated(healing.own(adder), after, _mid("A")), after)
    assert not healing.needs_heal(healing.own(after), after)
