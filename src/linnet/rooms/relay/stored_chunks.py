"""Pieces of attachments that a relay keeps for a room, named by their hash."""

from __future__ import annotations

import hashlib

import msgspec

from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.machine.outbox import Outbox
from linnet.rooms.messages import ChunkIs, ChunkPut, ChunkTaken, ChunkWant
from linnet.trace.records import Kind, Record

SPACE = "chunk"
"""Where the pieces themselves are, by room and digest."""
_LEAST = 4096
"""Bytes that a piece counts for at least: what a store and its index need for it."""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[float, int]).decode


class StoredChunks:
    """The pieces of one room."""

    def __init__(self, room: TopicId, cells: Cells, most: int, out: Outbox) -> None:
        self._room = room
        self._cells = cells
        self._out = out
        self._most = most
        self._space = f"relay.chunk/{room.hex()}"
        kept = [(digest, *_decode(value)) for digest, value in cells.scan(self._space)]
        self._kept: dict[bytes, tuple[float, int]] = {
            digest: (at, size) for digest, at, size in sorted(kept, key=lambda each: each[1])
        }
        self.bytes = sum(size for _, size in self._kept.values())

    @property
    def oldest(self) -> float | None:
        """When the oldest piece came."""
        return next((at for at, _ in self._kept.values()), None)

    def put(self, put: ChunkPut, now: float) -> ChunkTaken:
        """Keep a piece, if it is what its name says and there is room for it."""
        if hashlib.sha256(put.data).digest() != put.digest:
            return ChunkTaken(self._room, put.digest, Reason.MALFORMED)
        if put.digest in self._kept:
            return ChunkTaken(self._room, put.digest, None)
        size = max(_LEAST, len(put.data))
        if self.bytes + size > self._most:
            return ChunkTaken(self._room, put.digest, Reason.QUOTA)
        self._kept[put.digest] = (now, size)
        self.bytes += size
        self._cells.put(SPACE, self._room + put.digest, put.data)
        self._cells.put(self._space, put.digest, _encode((now, size)))
        return ChunkTaken(self._room, put.digest, None)

    def get(self, want: ChunkWant, since: float) -> list[ChunkIs]:
        """The pieces that were asked for, unless they were kept before a time."""
        return [self._get(digest, since) for digest in want.digests]

    def expire_before(self, before: float, reason: Reason = Reason.RETENTION) -> bool:
        """Let go of the pieces that came before a time; returns whether there were any."""
        count = len(self._kept)
        for digest, (at, size) in list(self._kept.items()):
            if at >= before:
                break
            del self._kept[digest]
            self.bytes -= size
            self._cells.delete(SPACE, self._room + digest)
            self._cells.delete(self._space, digest)
            self._out.record(Record(Kind.EXPIRED, self._room, bytes=size, reason=reason, note="chunk"))
        return len(self._kept) < count

    def _get(self, digest: bytes, since: float) -> ChunkIs:
        kept = self._kept.get(digest)
        if kept is None or kept[0] < since:
            return ChunkIs(self._room, digest, None, Reason.NOT_HELD)
        return ChunkIs(self._room, digest, self._cells.get(SPACE, self._room + digest), None)
