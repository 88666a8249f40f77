"""Translates between the JSON of the HTTP interface and messages of relays and members; decides nothing."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct

from linnet.core.errors import RemoteError
from linnet.core.ids import EventId, TopicId
from linnet.core.limits import EVENT_BYTES, KIB
from linnet.core.reasons import Reason
from linnet.delivery.messages import Given, Want
from linnet.event.event import Unverified
from linnet.event.signing import recall_unit
from linnet.identity.addresses import contact_text
from linnet.identity.cards import Card
from linnet.identity.text import Sort, event_text, from_text
from linnet.node.relay_protocol import (
    AuthDagReply,
    AuthDagRequest,
    EventResult,
    GetReply,
    GetRequest,
    RelayHttpError,
    ResyncReply,
    ResyncRequest,
    SendReply,
    SendRequest,
    Status,
    TombstoneView,
)
from linnet.rooms.invitations import Ticket
from linnet.rooms.messages import (
    AskControl,
    ControlPage,
    RelayCursor,
    RelayOutcome,
    RelayTaken,
    Resync,
    ResyncPage,
)
from linnet.wire.codec import Codec

UNIT_BYTES = EVENT_BYTES + KIB
"""The most bytes of a unit of one event: the event, and the fields around it."""
_CARD_BYTES = 1024
_TICKET_BYTES = 2048
_UNITS: Codec[Unverified] = Codec(Unverified, UNIT_BYTES)
_CARDS: Codec[Card] = Codec(Card, _CARD_BYTES)
_TICKETS: Codec[Ticket] = Codec(Ticket, _TICKET_BYTES)
_CURSOR = re.compile(r"([0-9a-f]{16})\.(0|[1-9][0-9]{0,18})")
_LARGEST_POSITION = 2**63 - 1
D = TypeVar("D")
_encode = msgspec.msgpack.Encoder().encode


class Parcel(Struct, frozen=True):
    """The content of a send request: events that could be decoded, and a result for each that could not."""

    entries: tuple[tuple[EventId, Unverified] | EventResult, ...]
    cards: tuple[Card, ...]

    @property
    def units(self) -> tuple[Unverified, ...]:
        """The units to send to the relay."""
        return tuple(entry[1] for entry in self.entries if not isinstance(entry, EventResult))


def parcel_of(request: SendRequest) -> Parcel:
    """Decode the units and cards of a request. An invalid event is a result, no error: the rest goes on."""
    cards = tuple(_decoded(_CARDS, card, f"cards[{number}]") for number, card in enumerate(request.cards))
    return Parcel(tuple(map(_entry, request.events)), cards)


def send_reply(parcel: Parcel, taken: RelayTaken | None) -> SendReply:
    """Return a result for each event, in the order of the request."""
    outcomes: dict[EventId, list[RelayOutcome]] = {}
    if taken is not None:
        _raise_if(taken.reason)
        for outcome in taken.outcomes:
            outcomes.setdefault(outcome.event, []).append(outcome)
    results = []
    for entry in parcel.entries:
        if isinstance(entry, EventResult):
            results.append(entry)
            continue
        found = outcomes.get(entry[0], [])
        # An event may be there twice, with different signatures: as many outcomes, in the same order.
        first = None if not found else found.pop(0) if len(found) > 1 else found[0]
        results.append(_result(entry[0], first))
    return SendReply(tuple(results))


def resync_message(room: TopicId, number: int, request: ResyncRequest) -> Resync:
    """Return a resync request as a message. It never follows new events, since an HTTP request ends."""
    cursor = None if request.cursor is None else read_cursor(request.cursor)
    return Resync(room, number, cursor, request.limit, follow=False)


def resync_reply(page: ResyncPage) -> ResyncReply:
    """Return a page as a reply, or raise its error."""
    _raise_if(page.reason, cursor_text(page.oldest))
    place = page.next or page.oldest
    return ResyncReply(
        None if place is None else place.epoch.hex(),
        _all(page.units),
        _all(page.cards),
        _all(page.receipts),
        tuple(TombstoneView(event_text(one.event), one.reason.value) for one in page.tombstones),
        cursor_text(page.next),
        page.more,
        cursor_text(page.oldest),
        tuple(map(event_text, page.control)),
    )


def want_message(room: TopicId, number: int, request: GetRequest) -> Want:
    """Return a request for events by id as a message."""
    return Want(room, number, tuple(map(read_event, request.ids)))


def get_reply(given: Given) -> GetReply:
    """Return the held events as a reply, or raise the error."""
    is_limited = given.reason is Reason.TOO_LARGE
    reason = None if is_limited else given.reason
    if reason not in (None, Reason.NOT_HELD, Reason.RETENTION, Reason.QUOTA):
        _raise_if(reason)
    return GetReply(
        _all(given.units),
        _all(given.cards),
        tuple(map(event_text, given.unknown)),
        None if reason is None else reason.value,
        is_limited,
    )


def control_message(room: TopicId, number: int, request: AuthDagRequest) -> AskControl:
    """Return a request for the control DAG as a message."""
    ticket = None if request.ticket is None else _decoded(_TICKETS, request.ticket, "ticket")
    return AskControl(room, number, tuple(map(read_event, request.heads)), ticket)


def control_reply(page: ControlPage, limit: int) -> AuthDagReply:
    """Return a page of control events, cut at the limit: each beginning of a causal order is complete."""
    _raise_if(page.reason)
    units = page.units[:limit]
    return AuthDagReply(
        _all(units),
        _all(page.cards),
        page.more or len(units) < len(page.units),
        tuple(map(event_text, page.heads)),
        tuple(map(contact_text, page.relays)),
    )


def read_event(text: str) -> EventId:
    """Parse an event id; raises `BadText` if it is none."""
    return EventId(from_text(Sort.EVENT, text))


def cursor_text(cursor: RelayCursor | None) -> str | None:
    """Return a cursor as one word."""
    return None if cursor is None else f"{cursor.epoch.hex()}.{cursor.position}"


def read_cursor(text: str) -> RelayCursor:
    """Parse a word of `cursor_text`; raises `RelayHttpError` if it is none."""
    found = _CURSOR.fullmatch(text)
    if found is None or int(found[2]) > _LARGEST_POSITION:
        raise RelayHttpError(
            Reason.MALFORMED, "this cursor was not given by a relay", hint="send null instead"
        )
    return RelayCursor(bytes.fromhex(found[1]), int(found[2]))


def _entry(text: str) -> tuple[EventId, Unverified] | EventResult:
    if len(text) > (UNIT_BYTES + 2) // 3 * 4:
        return EventResult(None, Status.REJECTED, error=Reason.TOO_LARGE.value)
    try:
        unit = _UNITS.decode(base64.b64decode(text, validate=True))
        if len(unit.tails) == 1:
            return recall_unit(unit).head, unit
    except (RemoteError, msgspec.DecodeError, binascii.Error, ValueError, RecursionError):
        pass  # Told below, as is a burst, which no room has.
    return EventResult(None, Status.REJECTED, error=Reason.MALFORMED.value)


def _result(event: EventId, outcome: RelayOutcome | None) -> EventResult:
    text = event_text(event)
    if outcome is None:
        return EventResult(text, Status.REJECTED, error=Reason.UNKNOWN.value)
    missing = tuple(map(event_text, outcome.missing))
    reason = None if outcome.reason is None else outcome.reason.value
    if outcome.cursor is None:
        is_missing = bool(missing) or outcome.reason is Reason.MISSING_DEPENDENCY
        status = Status.MISSING if is_missing else Status.REJECTED
        return EventResult(text, status, None, reason or Reason.UNKNOWN.value, missing)
    if outcome.reason is Reason.DUPLICATE:
        return EventResult(text, Status.DUPLICATE, cursor_text(outcome.cursor))
    return EventResult(text, Status.ACCEPTED, cursor_text(outcome.cursor), reason, missing)


def _raise_if(reason: Reason | None, oldest: str | None = None) -> None:
    if reason is not None:
        words = _WORDS.get(reason, "the relay declined")
        raise RelayHttpError(reason, words, oldest_cursor=oldest if reason is Reason.CURSOR_EXPIRED else None)


_WORDS = {
    Reason.NOT_A_MEMBER: "this person is no member of the room",
    Reason.BANNED: "this person is banned from the room",
    Reason.UNKNOWN_ROOM: "this relay does not serve the room",
    Reason.CURSOR_EXPIRED: "what followed this cursor is gone, or the relay has begun anew",
    Reason.NOT_A_RELAY: "the room does not name this device as a relay",
    Reason.QUOTA: "the relay is full",
}


def _all(values: Sequence[Struct]) -> tuple[bytes, ...]:
    return tuple(map(_encode, values))


def _decoded(codec: Codec[D], raw: bytes, where: str) -> D:
    try:
        return codec.decode(raw)
    except RemoteError as error:
        raise RelayHttpError(Reason.MALFORMED, f"{where}: {error.detail}") from error
