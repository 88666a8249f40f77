"""Who is in a group, as each member sees it."""

from __future__ import annotations

import hashlib

from linnet.core.ids import AuthorId, DeviceId, EventId
from linnet.groups import membership
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


def _view(history: History, viewer: str | None = None) -> str:
    ids = membership.view(history, None if viewer is None else _mid(viewer))
    return "".join(mid.decode()[0] for mid in ids)


def test_c9_whom_a_removed_member_added_meanwhile_goes_with_it() -> None:
    history = membership.add(_group("ABX"), _op("add Y"), _mid("X"), _member("Y", "add Y"))
    history = membership.remove(history, _op("remove X"), _mid("A"), [_mid("X")])
    assert _view(history) == "AB"
    assert _view(history, "B") == "ABX"
    assert _view(history, "Y") == "ABXY"
    history = membership.ack(history, _mid("B"), _op("remove X"))
    assert _view(history, "B") == "AB"
    assert _view(membership.compact(history)) == "AB"
