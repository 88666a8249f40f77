"""The pieces of attachments that a member keeps of one room, named by their digest.

Pieces of our own are the source of them: they stay until they are too many, and then no more are taken.
Pieces that were fetched from others are a copy: the oldest give way.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record

LEAST_BYTES = 4096
"""Bytes that a piece counts for at least: what a store and its index need for it."""

_PIECES = "piece"
_encode = msgspec.msgpack.Encoder().encode


class Held(Struct, array_like=True):
    """What is known of a piece beside its bytes."""

    at: float
    size: int
    """What it counts for."""
    own: bool
    offered: bool
    """Whether it is still to be taken by a relay."""


_decode = msgspec.msgpack.Decoder(Held).decode


class ChunkStore:
    """Pieces in cells, and beside them an index that is small enough to be read at the start."""

    def __init__(self, room: TopicId, cells: Cells, most: int, out: Outbox) -> None:
        self._room = room
        self._cells = cells
        self._out = out
        self._most = most
        self._space = f"pieces/{room.hex()}"
        held = [(digest, _decode(value)) for digest, value in cells.scan(self._space)]
        self._held: dict[bytes, Held] = dict(sorted(held, key=lambda item: item[1].at))
        self.bytes = sum(each.size for each in self._held.values())
        """What all pieces count for."""

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._held

    def __len__(self) -> int:
        return len(self._held)

    @property
    def offered(self) -> list[bytes]:
        """Pieces that are still to be taken by a relay, the oldest first."""
        return [digest for digest, held in self._held.items() if held.offered]

    def get(self, digest: bytes) -> bytes | None:
        """A piece, if it is kept."""
        return self._cells.get(_PIECES, self._room + digest) if digest in self._held else None

    def keep(self, digest: bytes, data: bytes, own: bool, now: float) -> bool:
        """Keep a piece, which was checked; whether there is room for it."""
        held = self._held.get(digest)
        if held is not None:
            if own:
                held.own = held.offered = True
                self._write(digest, held)
            return True
        size = max(LEAST_BYTES, len(data))
        for old in self._in_the_way(size):
            self._drop(old)
        if self.bytes + size > self._most:
            note = "no room for a piece"
            self._out.record(
                Record(Kind.DROPPED, self._room, bytes=len(data), reason=Reason.QUOTA, note=note)
            )
            return False
        self._held[digest] = Held(now, size, own, own)
        self.bytes += size
        self._cells.put(_PIECES, self._room + digest, data)
        self._write(digest, self._held[digest])
        return True

    def settle(self, digest: bytes) -> None:
        """A relay has taken a piece."""
        held = self._held.get(digest)
        if held is not None and held.offered:
            held.offered = False
            self._write(digest, held)

    def _in_the_way(self, size: int) -> list[bytes]:
        """The copies that have to go for so many bytes; none, if that would not be enough."""
        excess = self.bytes + size - self._most
        found: list[bytes] = []
        for digest, held in self._held.items():
            if excess <= 0:
                break
            if not held.own:
                found.append(digest)
                excess -= held.size
        return found if excess <= 0 else []

    def _drop(self, digest: bytes) -> None:
        held = self._held.pop(digest)
        self.bytes -= held.size
        self._cells.delete(_PIECES, self._room + digest)
        self._cells.delete(self._space, digest)
        note = "a fetched piece"
        self._out.record(Record(Kind.EVICTED, self._room, bytes=held.size, reason=Reason.QUOTA, note=note))

    def _write(self, digest: bytes, held: Held) -> None:
        self._cells.put(self._space, digest, _encode(held))
