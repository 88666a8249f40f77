"""Showing newcomers what was said before: the keys of old messages, told to the group as it is now.

Only rooms that were founded so keep these keys at all (`Newcomers.SHARED`); a member shows them by a word of
its own. Who gets a key opens the very event that its author has signed, and takes nobody's word for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from linnet.core.errors import InvalidEvent
from linnet.core.ids import EventId, WireEventId
from linnet.core.reasons import Reason

KEYS = 2_048
"""Keys in one event: 160 KiB of the 252 that a body may have."""
_KEY_BYTES = 44

MessageKey = Annotated[bytes, Meta(min_length=_KEY_BYTES, max_length=_KEY_BYTES)]


class History(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The body of an event that shows what was said before."""

    keys: Annotated[tuple[tuple[WireEventId, MessageKey], ...], Meta(min_length=1, max_length=KEYS)]

    def __repr__(self) -> str:
        return f"History({len(self.keys)} keys)"


_decode = msgspec.msgpack.Decoder(History).decode
_encode = msgspec.msgpack.Encoder().encode


def history_bodies(keys: Iterable[tuple[EventId, bytes]]) -> Iterator[bytes]:
    """These keys as the bodies of as many events as it takes."""
    page: list[tuple[EventId, bytes]] = []
    for each in keys:
        page.append(each)
        if len(page) == KEYS:
            yield _encode(History(tuple(page)))
            page = []
    if page:
        yield _encode(History(tuple(page)))


def history_of(body: bytes) -> History:
    """What such an event shows; `InvalidEvent` if it is none."""
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # Without the cause: what could not be read is a secret.
        raise InvalidEvent(Reason.MALFORMED, "the body of a history event") from None
