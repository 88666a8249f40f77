from __future__ import annotations

import msgspec
import pytest
from msgspec import Struct

from linnet.node.room_types import (
    CreateRoomRequest,
    JoinRoomRequest,
    KeepChunkRequest,
    LedgerQuery,
    LevelRequest,
    MembershipRequest,
    ReadQuery,
    RetentionRequest,
    SendRequest,
)
from linnet.rooms.content import JoinRule, Membership


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (CreateRoomRequest, {"name": ""}),
        (CreateRoomRequest, {"rule": "nobody"}),
        (CreateRoomRequest, {"other": 1}),
        (JoinRoomRequest, {"patience": 0}),
        (JoinRoomRequest, {"patience": 601}),
        (JoinRoomRequest, {"contacts": [""]}),
        (MembershipRequest, {"person": "lp1", "membership": "owner"}),
        (LevelRequest, {"level": 2**53}),
        (RetentionRequest, {"seconds": 0}),
        (SendRequest, {"texts": [""] * 257}),
        (SendRequest, {"deadline": 0}),
        (KeepChunkRequest, {}),
    ],
)
def test_a_request_has_bounds(kind: type[Struct], wrong: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode(wrong), type=kind)


def test_a_request_says_only_what_differs() -> None:
    assert msgspec.json.encode(CreateRoomRequest("tea")) == b'{"name":"tea"}'
    asked = MembershipRequest("lp1", Membership.BAN)
    assert msgspec.json.decode(msgspec.json.encode(asked), type=MembershipRequest) == asked
    assert msgspec.json.decode(b'{"rule": "public"}', type=CreateRoomRequest).rule is JoinRule.PUBLIC


def test_a_query_comes_as_text() -> None:
    given = {"since": "0", "state": "false", "ack": "manual"}
    assert msgspec.convert(given, ReadQuery, strict=False) == ReadQuery(0.0, state=False, ack="manual")
    assert msgspec.convert({"limit": "5"}, LedgerQuery, strict=False) == LedgerQuery(limit=5)
