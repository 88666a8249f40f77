"""Every operation of the control API that has to do with content."""

from __future__ import annotations

from linnet.node.content_types import (
    CloseGroupRequest,
    ContentItemView,
    ContentPublishReply,
    ContentPublishRequest,
    ContentQuery,
    ContentReply,
    ForgetRequest,
    GroupRequest,
    GroupsFoundReply,
    GroupsQuery,
    GroupsReply,
    OwnGroupView,
)
from linnet.node.control_types import DoneReply
from linnet.node.operation import Form, Operation

_TOLD = (403, 404, 409, 413, 429)

CONTENT_OPERATIONS = (
    Operation(
        "content",
        "GET",
        "/v1/content",
        "Subscriptions to content, and what this node carries for others.",
        ContentReply,
        errors=(409,),
    ),
    Operation(
        "publish_content",
        "POST",
        "/v1/content/publish",
        "Say something with attributes; answered when all who live have answered.",
        ContentPublishReply,
        body=ContentPublishRequest,
        errors=_TOLD,
    ),
    Operation(
        "subscribe_content",
        "GET",
        "/v1/content/subscribe",
        "Be handed what a predicate accepts, one JSON value per line, until either side closes.",
        ContentItemView,
        query=ContentQuery,
        form=Form.LINES,
        errors=(403, 404, 409, 429),
    ),
    Operation(
        "forget_content",
        "POST",
        "/v1/content/forget",
        "End a kept subscription for good, with what waits in it.",
        DoneReply,
        body=ForgetRequest,
        errors=_TOLD,
    ),
    Operation(
        "content_groups",
        "GET",
        "/v1/content/groups",
        "Groups of ours, and those that this node is in.",
        GroupsReply,
        errors=(409,),
    ),
    Operation(
        "find_content_groups",
        "GET",
        "/v1/content/groups/find",
        "Groups of anybody that were advertised and carry what a predicate accepts.",
        GroupsFoundReply,
        query=GroupsQuery,
        errors=(409, 429),
    ),
    Operation(
        "open_content_group",
        "POST",
        "/v1/content/groups",
        "Serve those who want events of a predicate; kept over restarts.",
        OwnGroupView,
        body=GroupRequest,
        errors=_TOLD,
    ),
    Operation(
        "close_content_group",
        "POST",
        "/v1/content/groups/close",
        "Serve a group no longer, and tell its members.",
        DoneReply,
        body=CloseGroupRequest,
        errors=_TOLD,
    ),
)
