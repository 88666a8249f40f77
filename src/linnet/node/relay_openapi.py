"""A relay's HTTP face described as OpenAPI 3.1."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from linnet.node.openapi import Interface, describe
from linnet.node.operation import Operation
from linnet.node.relay_http_types import RelayErrorReply
from linnet.node.relay_operations import RELAY_OPERATIONS
from linnet.node.relay_signing import SCHEME

_ERRORS = {
    400: "The request is not understood.",
    401: "The signature, its time, its nonce or the card is not accepted.",
    403: "The room's rules or its state stand against it.",
    404: "There is no such path, or this relay does not serve the room.",
    408: "The body did not arrive in time.",
    409: "Another request had this transaction id.",
    410: "What followed the cursor is gone; `oldest_cursor` says where to go on.",
    413: "Larger than allowed.",
    415: "The request is not application/json.",
    429: "Too many requests; `Retry-After` says how long to wait.",
    503: "The relay is stopping, busy, or did not answer in time.",
    507: "The relay is full.",
}
_EVERY = (400, 429, 503)
_SIGNED = (401, 403, 408, 413, 415)


def relay_document() -> dict[str, Any]:
    """The whole description."""
    return describe(
        Interface(
            "Linnet relay",
            "What a relay is asked over HTTP by devices that hold no link to it.",
            "http://localhost",
            "wherever relay.http of the relay's configuration says",
            RELAY_OPERATIONS,
            RelayErrorReply,
            _statuses,
            _ERRORS,
            {
                "device": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Authorization",
                    "description": f"{SCHEME}: docs/reference/relay-http.md",
                }
            },
            lambda operation: [{"device": []}] if operation.body is not None else [],
        )
    )


def _statuses(operation: Operation) -> Iterable[int]:
    signed = _SIGNED if operation.body is not None else ()
    return (*_EVERY, *signed, *operation.errors)
