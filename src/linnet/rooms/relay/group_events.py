"""Which operations on a room's keys a relay keeps, and how far each device has read them.

What operations say is not looked at. Where each stands, of which device it is and since when, is all at hand,
so that letting one go needs no look into the log. A device takes part once it has said something of kind
`group`. How far it has read is what it says itself, by the cursor with which it asks for more: it gives that
after it has stored what lies before.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.event.event import Event
from linnet.machine.outbox import Outbox
from linnet.rooms.relay.usage import Budget, Usage
from linnet.trace.records import Kind, Record

_encode = msgspec.msgpack.Encoder().encode
DEVICES = 4096
"""Devices of one room of which this is kept; past it one that is of no member goes, else the oldest."""
NOTE = "group device"


class Shelved(NamedTuple):
    """One that is kept."""

    position: int
    key: bytes
    """Author and device."""
    at: float
    """When it came."""
    side: int
    """0: from a peer; 1: from a relay."""


_decode_shelved = msgspec.msgpack.Decoder(Shelved).decode


def key_of(event: Event) -> bytes:
    """Whose event it is, device by device."""
    return event.author + event.device


class GroupShelf:
    """The `group` events of one room, in the order in which they came."""

    def __init__(self, room: TopicId, cells: Cells, budget: Budget) -> None:
        self._cells = cells
        self._space = f"relay.group_at/{room.hex()}"
        self.usage = Usage(room, cells, budget, "relay.group_share")
        kept = {EventId(key): _decode_shelved(value) for key, value in cells.scan(self._space)}
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
        """Add an event, past all others."""
        item = Shelved(position, key_of(event), now, side)
        self.items.append(item)
        self._places[event.id] = position
        self._own.setdefault(item.key, []).append(position)
        self._cells.put(self._space, event.id, _encode(item))
        self.usage.add_event(event.author, size, False, now)

    def remove(self, event: Event, size: int) -> None:
        """Remove an event."""
        position, key = self._places.pop(event.id), key_of(event)
        del self.items[bisect_left(self.items, position, key=_position)]
        own = self._own[key]
        del own[bisect_left(own, position)]
        if not own:
            del self._own[key]
        self._cells.delete(self._space, event.id)
        self.usage.remove_event(event.author, size, False)

    def count_past(self, position: int) -> int:
        """How many are past a position."""
        return len(self.items) - bisect_right(self.items, position, key=_position)

    def count_unread(self, key: bytes, read: int) -> int:
        """How many of others a device lacks that has read up to here."""
        own = self._own.get(key, ())
        return self.count_past(read) - (len(own) - bisect_right(own, read))


def _position(item: Shelved) -> int:
    return item.position


class Reader(Struct, frozen=True, array_like=True, gc=False):
    """How far one device is."""

    read: int
    """It has what is kept up to here."""
    mark: int
    """It has had everything up to here, or took no part then."""
    lost: bool = False
    """Whether something past `mark` was let go that it had not read: it has to be added anew."""


_decode_reader = msgspec.msgpack.Decoder(Reader).decode


class GroupDevices:
    """The devices of one room; they outlive a restart."""

    def __init__(self, room: TopicId, cells: Cells, shelf: GroupShelf, out: Outbox) -> None:
        self._room = room
        self._out = out
        self._cells = cells
        self._shelf = shelf
        self._space = f"relay.group_read/{room.hex()}"
        self.readers: dict[bytes, Reader] = {
            key: _decode_reader(value) for key, value in cells.scan(self._space)
        }
        """By author and device."""

    def count_of(self, person: AuthorId) -> int:
        """How many are of one person."""
        return sum(key[:32] == person for key in self.readers)

    def add_reader(self, key: bytes, position: int, is_current: Callable[[bytes], bool]) -> None:
        """Keep account of a device that said something of kind `group`, which is kept here."""
        if key in self.readers:
            return
        if len(self.readers) >= DEVICES:
            oldest = next((each for each in self.readers if not is_current(each)), next(iter(self.readers)))
            self._forget(oldest)
            self.record_loss(oldest, Reason.TOO_MANY)
        self._write(key, Reader(0, position))

    def note_read(self, key: bytes, position: int) -> None:
        """Note how far a device is that asks for what is past a position: it has what lies before, for sure.

        Who has lost what it had asks from the beginning, and is waited for again.
        """
        before = self.readers.get(key)
        if before is None or before.read == position:
            return
        lost = before.lost and position <= before.mark
        after = Reader(position, max(before.mark, position), lost)
        self.readers[key] = after
        if lost != before.lost or self._shelf.count_past(position) != self._shelf.count_past(before.read):
            self._write(key, after)  # else it makes no difference, and a restart may forget it

    def note_loss(self, key: bytes, position: int) -> bool:
        """Note that something is let go that a device has not read; returns if it is the first since it read.

        Then the caller records it, once what is let go is recorded.
        """
        before = self.readers[key]
        if before.lost or position <= before.mark:
            return False
        self._write(key, replace(before, lost=True))
        return True

    def record_loss(self, key: bytes, reason: Reason) -> None:
        """Record that a device is not waited for any more."""
        device = DeviceId(key[32:])
        self._out.record(Record(Kind.EVICTED, self._room, device=device, reason=reason, note=NOTE))

    def clear(self) -> None:
        """Forget all of them."""
        for key in list(self.readers):
            self._forget(key)

    def _write(self, key: bytes, reader: Reader) -> None:
        self.readers[key] = reader
        self._cells.put(self._space, key, _encode(reader))

    def _forget(self, key: bytes) -> None:
        del self.readers[key]
        self._cells.delete(self._space, key)
