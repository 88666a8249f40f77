"""Requests of guests that were acknowledged, and that no application is done with yet.

The guest was told that its request is written down, so it is: whoever watches after a crash is handed it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from linnet.core.errors import Refused
from linnet.core.ids import AuthorId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.places.channel.packet import Modifier, Packet
from linnet.places.items import Body, Said

MOST = 4096
MOST_BYTES = 64 * 1024 * 1024
"""Requests of one place that wait for an application; past this guests are told that it is too much."""


class _Kept(Struct, frozen=True, array_like=True, gc=False):
    nym: AuthorId
    request: int
    method: str
    modifiers: tuple[Modifier, ...]
    body: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Kept).decode


class Requests:
    """The requests of one place that wait, by numbers that count from 1 in the order in which they came."""

    def __init__(self, place: TopicId, cells: Cells) -> None:
        self._place = place
        self._cells = cells
        self._space = f"place request {place.hex()}"
        self._sizes = {int.from_bytes(key, "big"): len(raw) for key, raw in cells.scan(self._space)}
        self._bytes = sum(self._sizes.values())
        self._next = max(self._sizes, default=0) + 1

    def __len__(self) -> int:
        return len(self._sizes)

    def keep(self, nym: AuthorId, request: int, packet: Packet) -> int:
        """Write one down; its number. `Refused` if too much waits already."""
        raw = _encode(_Kept(nym, request, packet.method, packet.modifiers, packet.body))
        if len(self._sizes) >= MOST or self._bytes + len(raw) > MOST_BYTES:
            raise Refused(Reason.QUEUE_FULL, f"{len(self._sizes)} requests wait for an application")
        number, self._next = self._next, self._next + 1
        self._cells.put(self._space, number.to_bytes(8, "big"), raw)
        self._sizes[number] = len(raw)
        self._bytes += len(raw)
        return number

    def done(self, number: int) -> None:
        """An application has handled it; again does nothing."""
        size = self._sizes.pop(number, None)
        if size is not None:
            self._bytes -= size
            self._cells.delete(self._space, number.to_bytes(8, "big"))

    def items(self) -> Iterator[tuple[int, Said, Body]]:
        """All that wait, in their order, as they are handed over."""
        for key, raw in self._cells.scan(self._space):
            kept = _decode(raw)
            said, body = items_of(
                self._place, kept.nym, kept.request, Packet(kept.modifiers, kept.method, kept.body)
            )
            yield int.from_bytes(key, "big"), said, body


def items_of(place: TopicId, nym: AuthorId, request: int, packet: Packet) -> tuple[Said, Body]:
    """A request as it is handed over."""
    said = Said(place, request, nym, nym, packet.method, packet.modifiers, False)
    return said, Body(place, request, nym, 0, packet.body, True)
