"""Which operations on a room's keys a relay keeps: where each stands, of which device it is, since when.

What they say is not looked at. All of it is at hand, so that letting one go needs no look into the log.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

import msgspec

from linnet.core.ids import EventId, TopicId
from linnet.core.stores import Cells
from linnet.event.event import Event
from linnet.rooms.relay.usage import Budget, Usage

_encode = msgspec.msgpack.Encoder().encode


class Shelved(NamedTuple):
    """One that is kept."""

    position: int
    key: bytes
    """Author and device."""
    at: float
    """When it came."""
    side: int
    """0: from a peer; 1: from a relay."""


_decode = msgspec.msgpack.Decoder(Shelved).decode


def key_of(event: Event) -> bytes:
    """Whose event it is, device by device."""
    return event.author + event.device


class GroupShelf:
    """The `group` events of one room, in the order in which they came."""

    def __init__(self, room: TopicId, cells: Cells, budget: Budget) -> None:
        self._cells = cells
        self._space = f"relay.group_at/{room.hex()}"
        self.usage = Usage(room, cells, budget, "relay.group_share")
        kept = {EventId(key): _decode(value) for key, value in cells.scan(self._space)}
        self._places = {event: item.position for event, item in kept.items()}
        self.items = sorted(kept.values())
        """All of them, oldest first."""
        self._own: dict[bytes, list[int]] = {}
        for item in self.items:
            self._own.setdefault(item.key, []).append(item.position)

    def __len__(self) -> int:
        return len(self.items)

    def __contains__(self, event: EventId) -> bool:
        return event in self._places

    def position(self, event: EventId) -> int | None:
        """Where one is kept; None if it is not."""
        return self._places.get(event)

    def add(self, event: Event, position: int, size: int, side: int, now: float) -> None:
        """One more is kept, past all others."""
        item = Shelved(position, key_of(event), now, side)
        self.items.append(item)
        self._places[event.id] = position
        self._own.setdefault(item.key, []).append(position)
        self._cells.put(self._space, event.id, _encode(item))
        self.usage.added(event.author, size, False, now)

    def remove(self, event: Event, size: int) -> None:
        """One less is kept."""
        position, key = self._places.pop(event.id), key_of(event)
        del self.items[bisect_left(self.items, position, key=_position)]
        own = self._own[key]
        del own[bisect_left(own, position)]
        if not own:
            del self._own[key]
        self._cells.delete(self._space, event.id)
        self.usage.removed(event.author, size, False)

    def past(self, position: int) -> int:
        """How many are past a position."""
        return len(self.items) - bisect_right(self.items, position, key=_position)

    def unread(self, key: bytes, read: int) -> int:
        """How many of others a device lacks that has read up to here."""
        own = self._own.get(key, ())
        return self.past(read) - (len(own) - bisect_right(own, read))


def _position(item: Shelved) -> int:
    return item.position
