"""What the HTTP face of a relay is asked and what it answers: JSON, ids in their text form.

Units of events, cards, receipts and tickets travel as base64 of their exact bytes, as on a link. A
cursor is a word that only the relay which gave it can read: nothing but equality may be read out of it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from linnet.node.relay_limits import EVENTS_PER_SEND, IDS_PER_GET

EventText = Annotated[str, Meta(min_length=1, max_length=128, description="an event id, `le1…`")]
CursorText = Annotated[str, Meta(min_length=1, max_length=64, description="a cursor of this relay")]
CardBytes = Annotated[bytes, Meta(description="a device card, base64 of its bytes")]
UnitText = Annotated[str, Meta(description="a unit of one event, base64 of its exact bytes")]


class Status(StrEnum):
    """What became of one event."""

    ACCEPTED = "accepted"
    """It is kept, durably, and passed on."""
    DUPLICATE = "duplicate"
    """It was kept before."""
    REJECTED = "rejected"
    """It is not kept; `error` says why. Not to be sent again as it is."""
    MISSING = "missing"
    """It cannot be judged yet: send the control events in `missing` first, then this again."""


class SendRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Events to be kept, and the cards of devices whose first events these may be."""

    events: Annotated[tuple[UnitText, ...], Meta(min_length=1, max_length=EVENTS_PER_SEND)]
    """Units of one event each, an event after those it refers to."""
    cards: Annotated[tuple[CardBytes, ...], Meta(max_length=EVENTS_PER_SEND)] = ()
    """Cards of the devices that signed them."""


class EventResult(Struct, frozen=True, omit_defaults=True):
    """What became of one event of a request."""

    event: str | None
    """Its id; null if the bytes were no event at all."""
    status: Status
    cursor: str | None = None
    """Where it is kept."""
    error: str | None = None
    """Why it is not kept; `soft_failed` for one that is kept but not shown."""
    missing: tuple[str, ...] = ()
    """Control events that this relay lacks."""


class SendReply(Struct, frozen=True):
    """One result for each event, in the order in which they were sent."""

    results: tuple[EventResult, ...]


class ResyncRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """From where on, and how much."""

    cursor: CursorText | None = None
    """`next_cursor` of the last page. Null: from the oldest that is kept."""
    limit: Annotated[int, Meta(ge=1, le=1024)] = 256
    """Events that a page may have; the relay may send fewer."""


class TombstoneView(Struct, frozen=True):
    """An event of the asker's own that was kept and is kept no longer."""

    event: str
    reason: str


class ResyncReply(Struct, frozen=True):
    """A page of what the relay keeps, in the order in which it came."""

    epoch: str | None
    """Another than before: the relay has lost what it had."""
    events: tuple[bytes, ...]
    """Units, base64 of their exact bytes."""
    cards: tuple[CardBytes, ...]
    """Cards of the devices that signed them."""
    receipts: tuple[bytes, ...]
    """Receipts of devices, base64 of their bytes."""
    tombstones: tuple[TombstoneView, ...]
    next_cursor: str | None
    """To be given with the next request."""
    limited: bool
    """Whether there is more: ask again at once."""
    oldest_cursor: str | None
    """The oldest that is kept."""
    control_heads: tuple[str, ...]
    """Heads of the relay's control DAG: whoever knows more sends it."""


class GetRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Events by id."""

    ids: Annotated[tuple[EventText, ...], Meta(min_length=1, max_length=IDS_PER_GET)]


class GetReply(Struct, frozen=True):
    """What is held of them, in causal order."""

    events: tuple[bytes, ...]
    cards: tuple[CardBytes, ...]
    unknown: tuple[str, ...]
    """Those that are not held."""
    reason: str | None
    """Why: `not_held`, `retention`."""
    limited: bool
    """Whether some that are held had no room in this answer: ask for them again."""


class AuthDagRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the asker knows of the control DAG."""

    heads: Annotated[tuple[EventText, ...], Meta(max_length=256)] = ()
    """Heads that it has; none: all is wanted."""
    limit: Annotated[int, Meta(ge=1, le=1024)] = 256
    ticket: bytes | None = None
    """Of one who is not a member yet: the invitation, base64 of its bytes."""


class AuthDagReply(Struct, frozen=True):
    """Control events beyond those heads, in causal order."""

    events: tuple[bytes, ...]
    cards: tuple[CardBytes, ...]
    more: bool
    """Whether to ask again, from the heads that are known then."""
    heads: tuple[str, ...]
    """Heads of the relay's control DAG."""
    relays: tuple[str, ...]
    """The room's relays, `KEY@tls://HOST:PORT`."""


class LimitsView(Struct, frozen=True):
    """What this relay allows."""

    events_per_send: int
    ids_per_get: int
    request_bytes: int
    window_ms: int
    """How far the time of a request may be from the relay's clock."""
    requests_per_second: float
    """Of one device, for long."""
    requests_at_once: int


class InfoReply(Struct, frozen=True):
    """Who this relay is and how it is doing."""

    versions: tuple[str, ...]
    device: str
    """Its device id, which every request's signature names."""
    person: str
    rooms: int
    kept_events: int
    kept_bytes: int
    capacity_bytes: int
    retention_ms: int
    """How long an event is kept where a room says nothing."""
    clock_ms: int
    """The clock by which the time of requests is judged."""
    limits: LimitsView


class RelayErrorReply(Struct, frozen=True, omit_defaults=True):
    """What went wrong, in one word; in words; and what to do."""

    error: str
    detail: str
    hint: str
    oldest_cursor: str | None = None
    """With `cursor_expired`: where to go on."""
