"""Every operation of a relay's HTTP face, once: the server routes by this, OpenAPI is made from it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from linnet.node.operation import Operation
from linnet.node.relay_http_types import (
    AuthDagReply,
    AuthDagRequest,
    GetReply,
    GetRequest,
    InfoReply,
    ResyncReply,
    ResyncRequest,
    SendReply,
    SendRequest,
)

PREFIX = "/linnet/relay/v1"
VERSIONS = ("v1",)

RoomText = Annotated[str, Meta(min_length=1, max_length=128)]
TxnText = Annotated[str, Meta(min_length=1, max_length=128, pattern="^[A-Za-z0-9._~-]+$")]
_ROOM = ("room", RoomText, "The room's id, `lt1…`.")
_TXN = ("txn", TxnText, "The asker's name for this request; said again, it gets the same answer.")

RELAY_OPERATIONS = (
    Operation("info", "GET", f"{PREFIX}/info", "Who this relay is. Needs no signature.", InfoReply),
    Operation("openapi", "GET", f"{PREFIX}/openapi.json", "This description.", dict),
    Operation(
        "send",
        "PUT",
        f"{PREFIX}/{{room}}/send/{{txn}}",
        "Have events kept and passed on to the room's other relays. Each has a result of its own.",
        SendReply,
        body=SendRequest,
        parameters=(_ROOM, _TXN),
        errors=(404, 409, 507),
    ),
    Operation(
        "forward",
        "PUT",
        f"{PREFIX}/{{room}}/forward/{{txn}}",
        "From relay to relay: have events kept that go no further.",
        SendReply,
        body=SendRequest,
        parameters=(_ROOM, _TXN),
        errors=(404, 409, 507),
    ),
    Operation(
        "resync",
        "POST",
        f"{PREFIX}/{{room}}/resync",
        "Be handed what the relay keeps, from a cursor on.",
        ResyncReply,
        body=ResyncRequest,
        parameters=(_ROOM,),
        errors=(404, 410),
    ),
    Operation(
        "get",
        "POST",
        f"{PREFIX}/{{room}}/get",
        "Be handed events by id.",
        GetReply,
        body=GetRequest,
        parameters=(_ROOM,),
        errors=(404,),
    ),
    Operation(
        "authdag",
        "POST",
        f"{PREFIX}/{{room}}/authdag",
        "Be handed the room's control events: members, powers, rules, relays.",
        AuthDagReply,
        body=AuthDagRequest,
        parameters=(_ROOM,),
        errors=(404,),
    ),
)
