"""Subscriptions that outlive their readers and restarts: what each is, what waits in it, what it has had.

What is written here is durable before whoever sent an event is told that it arrived.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, msgpack

from linnet.content.commands import ContentItem, GroupAt, Match, Overflow, Via
from linnet.core.ids import EventId
from linnet.core.stores import Cells

NAME_BYTES = 64
SUBSCRIPTIONS, ITEMS, TAKEN = "content_kept", "content_items", "content_taken"
_NUMBER_BYTES = 8
_encode = msgpack.Encoder().encode


class Kept(Struct, frozen=True, array_like=True):
    """One subscription as it is written down."""

    predicate: str
    next: int
    """The number of the next thing that it takes."""
    via: Via = Via.SCOUT
    at: GroupAt | None = None


class _Row(Struct, frozen=True, array_like=True):
    match: Match | None
    lost: Overflow | None


_kept = msgpack.Decoder(Kept)
_row = msgpack.Decoder(_Row)


class KeptStore:
    """The cells of kept subscriptions."""

    def __init__(self, cells: Cells, remembered: int) -> None:
        self._cells = cells
        self._remembered = remembered
        self._taken: dict[EventId, bytes] = {EventId(event): key for key, event in cells.scan(TAKEN)}
        """Events that were taken lately, the oldest first, and where each is written."""
        self._last = int.from_bytes(next(reversed(self._taken.values()), b""))

    def subscriptions(self) -> Iterator[tuple[str, Kept]]:
        """All of them, by name."""
        for name, value in self._cells.scan(SUBSCRIPTIONS):
            yield name.decode(), _kept.decode(value)

    def items(self) -> Iterator[tuple[str, ContentItem]]:
        """All that waits, in its order, with the name of its subscription."""
        for key, value in self._cells.scan(ITEMS):
            row = _row.decode(value)
            item = row.match if row.match is not None else row.lost
            if item is not None:
                yield key[1 : 1 + key[0]].decode(), item

    def put(self, name: str, kept: Kept) -> None:
        """Write a subscription down."""
        self._cells.put(SUBSCRIPTIONS, name.encode(), _encode(kept))

    def put_item(self, name: str, item: ContentItem) -> None:
        """Write down something that waits."""
        row = _Row(item, None) if isinstance(item, Match) else _Row(None, item)
        self._cells.put(ITEMS, _key(name, item.number), _encode(row))

    def drop_item(self, name: str, number: int) -> None:
        """It was handled."""
        self._cells.delete(ITEMS, _key(name, number))

    def drop(self, name: str) -> None:
        """A subscription is gone; what waits in it is dropped one by one before."""
        self._cells.delete(SUBSCRIPTIONS, name.encode())

    def has_taken(self, event: EventId) -> bool:
        """Whether an event was taken already, perhaps before a restart."""
        return event in self._taken

    def take(self, event: EventId) -> None:
        """An event is taken: it is known again, until many others were."""
        if event in self._taken:
            return
        self._last += 1
        key = self._last.to_bytes(_NUMBER_BYTES)
        self._taken[event] = key
        self._cells.put(TAKEN, key, event)
        if len(self._taken) > self._remembered:
            oldest = next(iter(self._taken))
            self._cells.delete(TAKEN, self._taken.pop(oldest))


def _key(name: str, number: int) -> bytes:
    raw = name.encode()
    return bytes([len(raw)]) + raw + number.to_bytes(_NUMBER_BYTES)
