"""What the control API can be asked about names."""

from __future__ import annotations

from linnet.node.name_types import (
    NameReply,
    NamesFileReply,
    NamesReply,
    PetnameRequest,
    PetnamesReply,
    PublishNameRequest,
    RemoveNameRequest,
    RemovePetnameRequest,
    ResolveNameReply,
    ResolveNameRequest,
    TakeInNamesRequest,
    TakenInReply,
)
from linnet.node.operation import Operation

NAME_OPERATIONS = (
    Operation("names", "GET", "/v1/names", "What our zone says, as far as this device wrote it.", NamesReply),
    Operation(
        "publish_name",
        "POST",
        "/v1/names/publish",
        "Say under a label of our zone where a place is, or whose zone goes on from there.",
        NameReply,
        body=PublishNameRequest,
        errors=(403, 409, 413, 429),
    ),
    Operation(
        "remove_name",
        "POST",
        "/v1/names/remove",
        "Take back what our zone says under a label.",
        NameReply,
        body=RemoveNameRequest,
        errors=(403, 409, 413, 429),
    ),
    Operation(
        "resolve_name",
        "POST",
        "/v1/names/resolve",
        "Where an address leads and by whose word; a `fault` says why it leads nowhere.",
        ResolveNameReply,
        body=ResolveNameRequest,
        errors=(409, 413),
    ),
    Operation(
        "export_names", "GET", "/v1/names/export", "Our own records as a file, sealed.", NamesFileReply
    ),
    Operation(
        "take_in_names",
        "POST",
        "/v1/names/import",
        "Keep the records of such a file, as if a peer had given them.",
        TakenInReply,
        body=TakeInNamesRequest,
        errors=(409, 413),
    ),
    Operation("petnames", "GET", "/v1/petnames", "Whom the user knows by which name.", PetnamesReply),
    Operation(
        "set_petname",
        "POST",
        "/v1/petnames/set",
        "Know a person by a name; nobody is told.",
        PetnamesReply,
        body=PetnameRequest,
        errors=(409, 413, 429),
    ),
    Operation(
        "remove_petname",
        "POST",
        "/v1/petnames/remove",
        "Know nobody by this name any more.",
        PetnamesReply,
        body=RemovePetnameRequest,
        errors=(409, 413),
    ),
)
