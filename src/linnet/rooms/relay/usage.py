"""How much a relay keeps: of each author in a room, and in all."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from linnet.core.ids import AuthorId, TopicId
from linnet.core.stores import Cells

_encode = msgspec.msgpack.Encoder().encode


class Budget:
    """What all rooms of a relay hold together, and may."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.bytes = 0
        self.events = 0

    @property
    def bytes_left(self) -> int:
        """Bytes that are left."""
        return max(0, self.most - self.bytes)


class Share(Struct, frozen=True, array_like=True, gc=False):
    """What is kept of one author in the cache of a room."""

    events: int = 0
    bytes: int = 0
    states: int = 0
    """Of them, events of plain state."""
    last_ms: int | None = None
    """When the latest that was ever kept came."""


_NOTHING = Share()
_decode = msgspec.msgpack.Decoder(Share).decode


class Usage:
    """The shares of one room; it outlives a restart, so that nobody's quota begins anew."""

    def __init__(self, room: TopicId, cells: Cells, budget: Budget, space: str = "relay.share") -> None:
        self._cells = cells
        self._budget = budget
        self._space = f"{space}/{room.hex()}"
        self.shares: dict[AuthorId, Share] = {
            AuthorId(key): _decode(value) for key, value in cells.scan(self._space)
        }
        self.events = sum(share.events for share in self.shares.values())
        self.bytes = sum(share.bytes for share in self.shares.values())
        self.states = sum(share.states for share in self.shares.values())
        budget.bytes += self.bytes
        budget.events += self.events

    def share_of(self, author: AuthorId) -> Share:
        """The share of one author."""
        return self.shares.get(author, _NOTHING)

    def add_event(self, author: AuthorId, size: int, state: bool, now: float) -> None:
        """Count one more event of an author."""
        self._change(author, 1, size, int(state), int(now * 1000))

    def remove_event(self, author: AuthorId, size: int, state: bool) -> None:
        """Count one event of an author less. An author without any is forgotten, its last time too."""
        self._change(author, -1, -size, -int(state), self.share_of(author).last_ms)

    def _change(self, author: AuthorId, events: int, size: int, states: int, last_ms: int | None) -> None:
        before = self.share_of(author)
        share = Share(before.events + events, before.bytes + size, before.states + states, last_ms)
        self.events += events
        self.bytes += size
        self.states += states
        self._budget.events += events
        self._budget.bytes += size
        if share.events <= 0:
            self.shares.pop(author, None)
            self._cells.delete(self._space, author)
            return
        self.shares[author] = share
        self._cells.put(self._space, author, _encode(share))
