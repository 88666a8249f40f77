"""Every operation of the control API, once: the server routes by this, OpenAPI is made from it."""

from __future__ import annotations

from linnet.node.control_types import (
    BlockRequest,
    ConnectRequest,
    ConsumedRequest,
    DeclareRequest,
    DoctorReply,
    DoneReply,
    GraphReply,
    HistoryQuery,
    ItemView,
    PeersReply,
    PublishReply,
    PublishRequest,
    StatusReply,
    SubscribeQuery,
)
from linnet.node.device_types import DevicesReply, RevokeReply, RevokeRequest
from linnet.node.operation import Form, Operation
from linnet.node.room_operations import ROOM_OPERATIONS

__all__ = ["OPERATIONS", "Form", "Operation"]

OPERATIONS = (
    Operation("status", "GET", "/v1/status", "How things stand at this node.", StatusReply),
    Operation("peers", "GET", "/v1/peers", "Every link, open or wanted.", PeersReply),
    Operation(
        "publish",
        "POST",
        "/v1/publish",
        "Publish events; answered when they are durable here, or confirmed by storage nodes.",
        PublishReply,
        body=PublishRequest,
        errors=(403, 409, 413),
    ),
    Operation(
        "subscribe",
        "GET",
        "/v1/subscribe",
        "Be handed what is said in a stream, one JSON value per line, until either side closes.",
        ItemView,
        query=SubscribeQuery,
        form=Form.LINES,
        errors=(403, 409, 429),
    ),
    Operation(
        "history",
        "GET",
        "/v1/history",
        "Be handed what is kept of a stream, one JSON value per line; ends with it.",
        ItemView,
        query=HistoryQuery,
        form=Form.LINES,
        errors=(403, 409, 429),
    ),
    Operation(
        "consumed",
        "POST",
        "/v1/subscriptions/{subscription}/consumed",
        "Tell that items of a subscription with ack=manual were handled; answered when that is durable.",
        DoneReply,
        body=ConsumedRequest,
        parameters=(("subscription", int, "The number in the subscription's first line."),),
        errors=(404, 409, 413),
    ),
    Operation(
        "declare",
        "POST",
        "/v1/declare",
        "Decide who may publish in a stream of ours and how it is linked.",
        PublishReply,
        body=DeclareRequest,
        errors=(403, 409, 413),
    ),
    Operation(
        "block",
        "POST",
        "/v1/block",
        "Have nothing to do with a device any more, or again.",
        DoneReply,
        body=BlockRequest,
        errors=(409, 413),
    ),
    Operation(
        "connect",
        "POST",
        "/v1/connect",
        "Keep a link to a peer. Answered when that is noted; `peers` shows what came of it.",
        DoneReply,
        body=ConnectRequest,
        errors=(409, 413),
    ),
    Operation("doctor", "GET", "/v1/doctor", "What the node knows about its own health.", DoctorReply),
    Operation(
        "graph",
        "GET",
        "/v1/trackers/{topic}",
        "The graph of a topic that this node tracks.",
        GraphReply,
        parameters=(("topic", str, "A topic id, `lt1…`."),),
        errors=(404,),
    ),
    Operation("devices", "GET", "/v1/devices", "The devices of our person.", DevicesReply, errors=(409,)),
    Operation(
        "revoke_device",
        "POST",
        "/v1/devices/revoke",
        "Take a device of ours out of use, in streams and in every room that this node is in.",
        RevokeReply,
        body=RevokeRequest,
        errors=(403, 409, 413, 429),
    ),
    *ROOM_OPERATIONS,
    Operation("stop", "POST", "/v1/stop", "Stop the node, in good order.", DoneReply, status=202),
    Operation("openapi", "GET", "/v1/openapi.json", "This description.", dict),
)
