"""Storage of the pieces of one room's attachments, named by their digest, at a member or a relay.

A member's own pieces are originals: they are never evicted, and when they fill the quota no more are taken.
Fetched pieces are copies: the oldest are evicted for new ones.
"""

from __future__ import annotations

import hashlib
from itertools import takewhile
from typing import ClassVar, Generic, TypeVar

import msgspec
from msgspec import Struct

from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.machine.outbox import Outbox
from linnet.rooms.messages import ChunkIs, ChunkPut, ChunkTaken, ChunkWant
from linnet.trace.records import Kind, Record

LEAST_BYTES = 4096
"""The least bytes that a piece counts for: what a store and its index need for it."""

_encode = msgspec.msgpack.Encoder().encode


class Held(Struct, array_like=True):
    """The index entry of a piece."""

    at: float
    size: int
    """The bytes that the piece counts for."""

    @property
    def note(self) -> str:
        """The name of such a piece in a trace record."""
        return "chunk"


class HeldByMember(Held):
    """The index entry of a piece at a member."""

    own: bool
    offered: bool
    """Whether no relay has taken it yet, so that it is offered."""

    @property
    def note(self) -> str:
        """The name of such a piece in a trace record."""
        return "a piece of ours" if self.own else "a fetched piece"


H = TypeVar("H", bound=Held)


class KeptChunks(Generic[H]):
    """Pieces in cells, with an index that is small enough to be read at the start."""

    data_space: ClassVar[str]
    index_space: ClassVar[str]

    def __init__(self, room: TopicId, cells: Cells, most: int, kind: type[H], out: Outbox) -> None:
        self._room = room
        self._cells = cells
        self._out = out
        self.most = most
        self._index = f"{self.index_space}/{room.hex()}"
        decode = msgspec.msgpack.Decoder(kind).decode
        held = [(digest, decode(value)) for digest, value in cells.scan(self._index)]
        self._held: dict[bytes, H] = dict(sorted(held, key=lambda item: item[1].at))
        self.bytes = sum(each.size for each in self._held.values())
        """The bytes that all pieces count for."""

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._held

    def get(self, digest: bytes) -> bytes | None:
        """Return a piece; None if it is not stored."""
        if digest not in self._held:
            return None
        data = self._cells.get(self.data_space, self._room + digest)
        if data is None:  # The disk has damaged it: it may be stored again from another source.
            self.drop(digest, Kind.DROPPED, Reason.DAMAGED)
        return data

    def add(self, digest: bytes, data: bytes, held: H) -> None:
        """Store a new piece; the caller has checked it, and that it fits."""
        self._held[digest] = held
        self.bytes += held.size
        self._cells.put(self.data_space, self._room + digest, data)
        self.write(digest)

    def write(self, digest: bytes) -> None:
        """Write the index entry of a piece."""
        self._cells.put(self._index, digest, _encode(self._held[digest]))

    def drop(self, digest: bytes, kind: Kind, reason: Reason) -> None:
        """Delete a piece and record why."""
        held = self._held.pop(digest)
        self.bytes -= held.size
        self._cells.delete(self.data_space, self._room + digest)
        self._cells.delete(self._index, digest)
        self._out.record(Record(kind, self._room, bytes=held.size, reason=reason, note=held.note))


class ChunkStore(KeptChunks[HeldByMember]):
    """The pieces of one room that a member stores."""

    data_space = "piece"
    index_space = "pieces"

    def __init__(self, room: TopicId, cells: Cells, most: int, out: Outbox) -> None:
        super().__init__(room, cells, most, HeldByMember, out)

    @property
    def offered(self) -> list[bytes]:
        """The pieces that no relay has taken yet, the oldest first."""
        return [digest for digest, held in self._held.items() if held.offered]

    def keep(self, digest: bytes, data: bytes, own: bool, now: float) -> bool:
        """Store a piece, which the caller has checked; return whether there is room for it."""
        held = self._held.get(digest)
        if held is not None:
            if own:
                held.own = held.offered = True
                self.write(digest)
            return True
        size = max(LEAST_BYTES, len(data))
        for old in self._in_the_way(size):
            self.drop(old, Kind.EVICTED, Reason.QUOTA)
        if self.bytes + size > self.most:
            note = "no room for a piece"
            self._out.record(
                Record(Kind.DROPPED, self._room, bytes=len(data), reason=Reason.QUOTA, note=note)
            )
            return False
        self.add(digest, data, HeldByMember(now, size, own, own))
        return True

    def settle(self, digest: bytes) -> None:
        """Note that a relay has taken a piece."""
        held = self._held.get(digest)
        if held is not None and held.offered:
            held.offered = False
            self.write(digest)

    def _in_the_way(self, size: int) -> list[bytes]:
        """Return the copies to evict for this many bytes; none if that would not be enough."""
        excess = self.bytes + size - self.most
        found: list[bytes] = []
        for digest, held in self._held.items():
            if excess <= 0:
                break
            if not held.own:
                found.append(digest)
                excess -= held.size
        return found if excess <= 0 else []


class StoredChunks(KeptChunks[Held]):
    """The pieces of one room that a relay stores."""

    data_space = "chunk"
    index_space = "relay.chunk"

    def __init__(self, room: TopicId, cells: Cells, most: int, out: Outbox) -> None:
        super().__init__(room, cells, most, Held, out)

    @property
    def oldest(self) -> float | None:
        """The time at which the oldest piece came; None if there are no pieces."""
        return next((held.at for held in self._held.values()), None)

    def put(self, put: ChunkPut, now: float) -> ChunkTaken:
        """Store a piece, if it has its digest and there is room for it."""
        if hashlib.sha256(put.data).digest() != put.digest:
            return ChunkTaken(self._room, put.digest, Reason.MALFORMED)
        size = max(LEAST_BYTES, len(put.data))
        if put.digest not in self:
            if self.bytes + size > self.most:
                return ChunkTaken(self._room, put.digest, Reason.QUOTA)
            self.add(put.digest, put.data, Held(now, size))
        return ChunkTaken(self._room, put.digest, None)

    def give(self, want: ChunkWant, since: float) -> list[ChunkIs]:
        """Return answers with the wanted pieces, except those stored before `since`."""
        return [self._give(digest, since) for digest in want.digests]

    def expire_before(self, before: float, reason: Reason = Reason.RETENTION) -> bool:
        """Delete the pieces that came before a time; return whether there were any."""
        old = list(takewhile(lambda digest: self._held[digest].at < before, self._held))
        for digest in old:
            self.drop(digest, Kind.EXPIRED, reason)
        return bool(old)

    def _give(self, digest: bytes, since: float) -> ChunkIs:
        held = self._held.get(digest)
        data = None if held is None or held.at < since else self.get(digest)
        return ChunkIs(self._room, digest, data, Reason.NOT_HELD if data is None else None)
