"""The public contract of a relay's HTTP interface: operations, requests, answers, errors, and OpenAPI.

All is JSON, with ids in their text form.

Units of events, cards, receipts and tickets are base64 of their exact bytes, as on a link. Only the relay
that gave a cursor can read it: to others, cursors can only be equal or different.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta, Struct

from linnet.api.openapi import HttpOperation, Interface, describe
from linnet.core.errors import BadText, LinnetError, Refused, RemoteError, StoreError
from linnet.core.reasons import Reason
from linnet.net.failure import DriverStopped
from linnet.node.relay_signing import SCHEME

EVENTS_PER_SEND = 50
"""The most events in one request: as many as a transaction of Matrix's federation has."""
IDS_PER_GET = 100

EventText = Annotated[str, Meta(min_length=1, max_length=128, description="an event id, `le1…`")]
CursorText = Annotated[str, Meta(min_length=1, max_length=64, description="a cursor of this relay")]
CardBytes = Annotated[bytes, Meta(description="a device card, base64 of its bytes")]
UnitText = Annotated[str, Meta(description="a unit of one event, base64 of its exact bytes")]


class Status(StrEnum):
    """The result for one event."""

    ACCEPTED = "accepted"
    """It is kept durably, and passed on."""
    DUPLICATE = "duplicate"
    """The relay has it already."""
    REJECTED = "rejected"
    """It is not kept; `error` says why. Do not send it again unchanged."""
    MISSING = "missing"
    """It cannot be checked yet: send the control events in `missing` first, then this again."""


class SendRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Events to keep, and the cards of devices that may be new to the relay."""

    events: Annotated[tuple[UnitText, ...], Meta(min_length=1, max_length=EVENTS_PER_SEND)]
    """Units of one event each; an event comes after those that it refers to."""
    cards: Annotated[tuple[CardBytes, ...], Meta(max_length=EVENTS_PER_SEND)] = ()
    """Cards of the devices that signed them."""


class EventResult(Struct, frozen=True, omit_defaults=True):
    """The result for one event of a request."""

    event: str | None
    """Its id; null if the bytes were not an event."""
    status: Status
    cursor: str | None = None
    """Its place in the relay's log."""
    error: str | None = None
    """Why it is not kept; `soft_failed` for one that is kept but not shown."""
    missing: tuple[str, ...] = ()
    """Control events that the relay lacks."""


class SendReply(Struct, frozen=True):
    """One result for each event, in the order in which they were sent."""

    results: tuple[EventResult, ...]


class ResyncRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The cursor to begin at, and the size of a page."""

    cursor: CursorText | None = None
    """`next_cursor` of the last page. Null: begin at the oldest event that is kept."""
    limit: Annotated[int, Meta(ge=1, le=1024)] = 256
    """Events that a page may have; the relay may send fewer."""


class TombstoneView(Struct, frozen=True):
    """An event of the asker's own that is no longer kept."""

    event: str
    reason: str


class ResyncReply(Struct, frozen=True):
    """A page of what the relay keeps, in the order of arrival."""

    epoch: str | None
    """If it differs from before, the relay has lost its data."""
    events: tuple[bytes, ...]
    """Units, base64 of their exact bytes."""
    cards: tuple[CardBytes, ...]
    """Cards of the devices that signed them."""
    receipts: tuple[bytes, ...]
    """Receipts of devices, base64 of their bytes."""
    tombstones: tuple[TombstoneView, ...]
    next_cursor: str | None
    """The cursor for the next request."""
    limited: bool
    """Whether there is more: ask again at once."""
    oldest_cursor: str | None
    """The cursor of the oldest event that is kept."""
    control_heads: tuple[str, ...]
    """Heads of the relay's control DAG: a member that knows more sends it."""


class GetRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Events to fetch by id."""

    ids: Annotated[tuple[EventText, ...], Meta(min_length=1, max_length=IDS_PER_GET)]


class GetReply(Struct, frozen=True):
    """The events that are held, in causal order."""

    events: tuple[bytes, ...]
    cards: tuple[CardBytes, ...]
    unknown: tuple[str, ...]
    """Ids of events that are not held."""
    reason: str | None
    """Why they are not held: `not_held`, `retention`."""
    limited: bool
    """Whether some held events did not fit this answer: ask for them again."""


class AuthDagRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The heads of the control DAG that the asker knows."""

    heads: Annotated[tuple[EventText, ...], Meta(max_length=256)] = ()
    """Heads that it has; none: it wants everything."""
    limit: Annotated[int, Meta(ge=1, le=1024)] = 256
    ticket: bytes | None = None
    """The invitation of a person who is not a member yet, base64 of its bytes."""


class AuthDagReply(Struct, frozen=True):
    """Control events beyond the given heads, in causal order."""

    events: tuple[bytes, ...]
    cards: tuple[CardBytes, ...]
    more: bool
    """Whether to ask again, from the heads that are known then."""
    heads: tuple[str, ...]
    """Heads of the relay's control DAG."""
    relays: tuple[str, ...]
    """The room's relays, `KEY@tls://HOST:PORT`."""


class LimitsView(Struct, frozen=True):
    """The limits of this relay."""

    events_per_send: int
    ids_per_get: int
    request_bytes: int
    window_ms: int
    """Milliseconds by which the time of a request may differ from the relay's clock."""
    requests_per_second: float
    """For one device, over a long time."""
    requests_at_once: int


class InfoReply(Struct, frozen=True):
    """The identity and state of this relay."""

    versions: tuple[str, ...]
    device: str
    """Its device id, which every request's signature names."""
    person: str
    rooms: int
    kept_events: int
    kept_bytes: int
    capacity_bytes: int
    retention_ms: int
    """Milliseconds that an event is kept in rooms without a setting of their own."""
    clock_ms: int
    """The clock against which the time of requests is checked."""
    limits: LimitsView


class RelayErrorReply(Struct, frozen=True, omit_defaults=True):
    """An error: one word, a description, and what to do."""

    error: str
    detail: str
    hint: str
    oldest_cursor: str | None = None
    """With `cursor_expired`: the cursor to go on from."""


PREFIX = "/linnet/relay/v1"
VERSIONS = ("v1",)

RoomText = Annotated[str, Meta(min_length=1, max_length=128)]
TxnText = Annotated[str, Meta(min_length=1, max_length=128, pattern="^[A-Za-z0-9._~-]+$")]
_ROOM = ("room", RoomText, "The room's id, `lt1…`.")
_TXN = ("txn", TxnText, "The asker's name for this request; said again, it gets the same answer.")


def _of_room(
    method: str, call: str, summary: str, body: type[Struct], reply: type[Struct], *errors: int
) -> HttpOperation:
    """Return an operation on one room."""
    name, _, txn = call.partition("/")
    parameters = (_ROOM, _TXN) if txn else (_ROOM,)
    path = f"{PREFIX}/{{room}}/{call}"
    return HttpOperation(
        name, method, path, summary, reply, body=body, parameters=parameters, errors=(404, *errors)
    )


RELAY_OPERATIONS = (
    HttpOperation("info", "GET", f"{PREFIX}/info", "Who this relay is. Needs no signature.", InfoReply),
    HttpOperation("openapi", "GET", f"{PREFIX}/openapi.json", "This description.", dict),
    _of_room(
        "PUT",
        "send/{txn}",
        "Have events kept and passed on to the room's other relays. Each has a result of its own.",
        SendRequest,
        SendReply,
        409,
        507,
    ),
    _of_room(
        "PUT",
        "forward/{txn}",
        "From relay to relay: have events kept that go no further.",
        SendRequest,
        SendReply,
        409,
        507,
    ),
    _of_room(
        "POST",
        "resync",
        "Be handed what the relay keeps, from a cursor on.",
        ResyncRequest,
        ResyncReply,
        410,
    ),
    _of_room("POST", "get", "Be handed events by id.", GetRequest, GetReply),
    _of_room(
        "POST",
        "authdag",
        "Be handed the room's control events: members, powers, rules, relays.",
        AuthDagRequest,
        AuthDagReply,
    ),
)


_STATUS = {
    Reason.MALFORMED: 400,
    Reason.UNSUPPORTED: 400,
    Reason.AUTH_FAILED: 401,
    Reason.BAD_SIGNATURE: 401,
    Reason.WRONG_KEY: 401,
    Reason.CARD_EXPIRED: 401,
    Reason.CARD_NOT_YET_VALID: 401,
    Reason.CARD_REVOKED: 401,
    Reason.STALE: 401,
    Reason.FUTURE_TIME: 401,
    Reason.REPEATED_NONCE: 401,
    Reason.UNKNOWN_ROOM: 404,
    Reason.IN_USE: 409,
    Reason.CURSOR_EXPIRED: 410,
    Reason.TOO_LARGE: 413,
    Reason.TOO_MANY: 429,
    Reason.FLOODING: 429,
    Reason.QUOTA: 507,
    Reason.CONGESTED: 503,
    Reason.QUEUE_FULL: 503,
    Reason.SHUTDOWN: 503,
    Reason.TIMEOUT: 503,
    Reason.MISSING_DEPENDENCY: 503,
    Reason.BUG: 500,
}
_FORBIDDEN = 403

_HINTS = {
    Reason.MALFORMED: "see /linnet/relay/v1/openapi.json",
    Reason.AUTH_FAILED: "sign the request with the device's key: docs/reference/relay-http.md",
    Reason.BAD_SIGNATURE: "sign what is sent, as it is sent, for this relay: docs/reference/relay-http.md",
    Reason.WRONG_KEY: "send the card of the device that signs",
    Reason.CARD_EXPIRED: "renew the device's card",
    Reason.CARD_NOT_YET_VALID: "check the clock of the device that issued the card",
    Reason.STALE: "set the clock, or go by clock_ms of /linnet/relay/v1/info",
    Reason.FUTURE_TIME: "set the clock, or go by clock_ms of /linnet/relay/v1/info",
    Reason.REPEATED_NONCE: "draw a new nonce for every request, also for a repeated one",
    Reason.NOT_A_MEMBER: "join the room first",
    Reason.NOT_A_RELAY: "only devices that the room names as relays may forward; use send",
    Reason.UNKNOWN_ROOM: "ask the room's members for its relays",
    Reason.IN_USE: "give every request that is not a repetition a transaction id of its own",
    Reason.CURSOR_EXPIRED: "go on from oldest_cursor, and fetch what is missing from members",
    Reason.TOO_LARGE: "send less at once",
    Reason.TOO_MANY: "wait as long as Retry-After says",
    Reason.FLOODING: "wait as long as Retry-After says",
    Reason.CONGESTED: "wait as long as Retry-After says",
    Reason.QUOTA: "use another relay of the room",
    Reason.SHUTDOWN: "use another relay of the room, or try again",
    Reason.TIMEOUT: "try again, with the same transaction id if there is one",
    Reason.MISSING_DEPENDENCY: "try again",
}


class RelayHttpError(LinnetError):
    """An error in answer to a request."""

    def __init__(
        self,
        reason: Reason | str,
        detail: str,
        status: int | None = None,
        hint: str | None = None,
        oldest_cursor: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        """Status and hint are derived from the reason unless they are given."""
        known = reason if isinstance(reason, Reason) else Reason.UNKNOWN
        super().__init__(f"{reason}: {detail}")
        self.status = _STATUS.get(known, _FORBIDDEN) if status is None else status
        self.reason = known
        hint = _HINTS.get(known, "") if hint is None else hint
        self.reply = RelayErrorReply(str(reason), detail, hint, oldest_cursor)
        self.retry_after = retry_after


def told(error: Exception) -> RelayHttpError:
    """Return any error as a reply. An error that is not ours is a bug, and reveals nothing."""
    match error:
        case RelayHttpError():
            return error
        case RemoteError() | Refused():
            return RelayHttpError(error.reason, error.detail)
        case BadText():
            return RelayHttpError(Reason.MALFORMED, str(error))
        case DriverStopped():
            return RelayHttpError(Reason.SHUTDOWN, str(error), retry_after=5.0)
        case TimeoutError():
            return RelayHttpError(Reason.TIMEOUT, "the relay did not answer in time", retry_after=5.0)
        case StoreError():
            return RelayHttpError("store", "the relay cannot keep anything now", 503, "use another relay")
        case _:
            return RelayHttpError(Reason.BUG, type(error).__name__, hint="this is a bug of the relay")


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
    """Return the whole OpenAPI description."""
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


def _statuses(operation: HttpOperation) -> Iterable[int]:
    signed = _SIGNED if operation.body is not None else ()
    return (*_EVERY, *signed, *operation.errors)
