"""Indexes of the events that a relay stores of a room, which save it from reading the log.

They hold the number and bytes of events of each author, and in all; the operations on the room's keys, with
position, device and time of each, so that one can be deleted without a look into the log; how far each device
has read these; and the events that were deleted. The content of operations is never read. A device takes part
once it has sent an event of kind `group`. It reports how far it has read by the cursor with which it asks for
more, and sends that only after it has stored all events before it.
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
from linnet.rooms.messages import Tombstone
from linnet.trace.records import Kind, Record

_encode = msgspec.msgpack.Encoder().encode


class Budget:
    """The bytes and events that all rooms of a relay store together, and the most bytes allowed."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.bytes = 0
        self.events = 0

    @property
    def bytes_left(self) -> int:
        """The bytes that are left."""
        return max(0, self.most - self.bytes)


class Share(Struct, frozen=True, array_like=True, gc=False):
    """The stored events of one author in a room, in numbers."""

    events: int = 0
    bytes: int = 0
    states: int = 0
    """The number of these that are events of plain state."""
    last_ms: int | None = None
    """The time at which the latest stored event came, also if it was deleted since."""


_NOTHING = Share()
_decode = msgspec.msgpack.Decoder(Share).decode


class Usage:
    """The shares of all authors in one room; kept over restarts, so that no quota begins anew."""

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
        """Return the share of one author."""
        return self.shares.get(author, _NOTHING)

    def add_event(self, author: AuthorId, size: int, state: bool, now: float) -> None:
        """Count one more event of an author."""
        self._change(author, 1, size, int(state), int(now * 1000))

    def remove_event(self, author: AuthorId, size: int, state: bool) -> None:
        """Count one event of an author less; forget an author without any, its last time too."""
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


DEVICES = 4096
"""The most devices of one room that are tracked; beyond it a non-member's is evicted, else the oldest."""
NOTE = "group device"


class Shelved(NamedTuple):
    """The index entry of a stored `group` event."""

    position: int
    key: bytes
    """Author and device."""
    at: float
    """The time at which it came."""
    side: int
    """0: from a peer; 1: from a relay."""


_decode_shelved = msgspec.msgpack.Decoder(Shelved).decode


def key_of(event: Event) -> bytes:
    """Return the key of the device that signed an event: author and device."""
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
        """The entries of all group events, oldest first."""
        self._own: dict[bytes, list[int]] = {}
        for item in self.items:
            self._own.setdefault(item.key, []).append(item.position)

    def __len__(self) -> int:
        return len(self.items)

    def __contains__(self, event: EventId) -> bool:
        return event in self._places

    def position(self, event: EventId) -> int | None:
        """Return the position of a group event; None if it is not stored."""
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
        """Return the number of group events past a position."""
        return len(self.items) - bisect_right(self.items, position, key=_position)

    def count_unread(self, key: bytes, read: int) -> int:
        """Return the number of other devices' events past `read`, which a device lacks."""
        own = self._own.get(key, ())
        return self.count_past(read) - (len(own) - bisect_right(own, read))


def _position(item: Shelved) -> int:
    return item.position


class Reader(Struct, frozen=True, array_like=True, gc=False):
    """How far one device has read the group events."""

    read: int
    """The device has all stored events up to this position."""
    mark: int
    """The device has had everything up to this position, or took no part then."""
    lost: bool = False
    """Whether an event past `mark` was deleted unread: the device has to be added anew."""


_decode_reader = msgspec.msgpack.Decoder(Reader).decode


class GroupDevices:
    """Tracks how far the devices of one room have read the group events; kept over restarts."""

    def __init__(self, room: TopicId, cells: Cells, shelf: GroupShelf, out: Outbox) -> None:
        self._room = room
        self._out = out
        self._cells = cells
        self._shelf = shelf
        self._space = f"relay.group_read/{room.hex()}"
        self.readers: dict[bytes, Reader] = {
            key: _decode_reader(value) for key, value in cells.scan(self._space)
        }
        """The readers by author and device."""

    def count_of(self, person: AuthorId) -> int:
        """Return the number of tracked devices of one person."""
        return sum(key[:32] == person for key in self.readers)

    def add_reader(self, key: bytes, position: int, is_current: Callable[[bytes], bool]) -> None:
        """Track a device that has sent an event of kind `group`, which is stored here."""
        if key in self.readers:
            return
        if len(self.readers) >= DEVICES:
            oldest = next((each for each in self.readers if not is_current(each)), next(iter(self.readers)))
            self._forget(oldest)
            self.record_loss(oldest, Reason.TOO_MANY)
        self._write(key, Reader(0, position))

    def note_read(self, key: bytes, position: int) -> None:
        """Note that a device asks for events past a position, and so has all events before it.

        A device that has lost its store asks from the beginning, and is waited for again.
        """
        before = self.readers.get(key)
        if before is None or before.read == position:
            return
        lost = before.lost and position <= before.mark
        after = Reader(position, max(before.mark, position), lost)
        self.readers[key] = after
        if lost != before.lost or self._shelf.count_past(position) != self._shelf.count_past(before.read):
            self._write(key, after)  # Otherwise nothing depends on it, and a restart may forget it.

    def note_loss(self, key: bytes, position: int) -> bool:
        """Note that an unread event of a device is deleted; return whether it is the first since it read.

        If so, the caller records the loss, once it has recorded the deletion.
        """
        before = self.readers[key]
        if before.lost or position <= before.mark:
            return False
        self._write(key, replace(before, lost=True))
        return True

    def record_loss(self, key: bytes, reason: Reason) -> None:
        """Record that the relay does not wait for a device any more."""
        device = DeviceId(key[32:])
        self._out.record(Record(Kind.EVICTED, self._room, device=device, reason=reason, note=NOTE))

    def clear(self) -> None:
        """Forget all devices."""
        for key in list(self.readers):
            self._forget(key)

    def _write(self, key: bytes, reader: Reader) -> None:
        self.readers[key] = reader
        self._cells.put(self._space, key, _encode(reader))

    def _forget(self, key: bytes) -> None:
        del self.readers[key]
        self._cells.delete(self._space, key)


class GoneEvent(Struct, frozen=True, array_like=True, gc=False):
    """An event that was removed."""

    event: EventId
    author: AuthorId
    reason: Reason
    end: int
    """The end of the log at the removal: a reader with a cursor before it has not been told."""


_decode_gone = msgspec.msgpack.Decoder(GoneEvent).decode


class Tombstones:
    """Remembers the removed events of one room by id, in the order of their removal.

    So an event that comes again is not taken for a new one, and its author learns why it was removed. The
    oldest of too many is forgotten.
    """

    def __init__(self, room: TopicId, cells: Cells, most: int) -> None:
        self._cells = cells
        self._space = f"relay.gone/{room.hex()}"
        self._most = most
        self._numbers: dict[EventId, int] = {}
        self._gone: dict[int, GoneEvent] = {}
        self._next = 0
        for key, value in cells.scan(self._space):
            self._note(int.from_bytes(key, "big"), _decode_gone(value))

    @property
    def next(self) -> int:
        """The number of the next tombstone."""
        return self._next

    def add(self, gone: GoneEvent) -> None:
        """Remember one more removed event."""
        if self._most <= 0:
            return
        self._cells.put(self._space, self._next.to_bytes(8, "big"), _encode(gone))
        self._note(self._next, gone)
        while len(self._gone) > self._most:
            self._forget(next(iter(self._gone)))

    def reason(self, event: EventId) -> Reason | None:
        """Return the reason why an event was removed; None if it was not, or if that is forgotten."""
        number = self._numbers.get(event)
        return None if number is None else self._gone[number].reason

    def first_untold(self, position: int) -> int:
        """Return the number of the first tombstone that a reader at a position may not have been sent."""
        for number, gone in reversed(self._gone.items()):
            if gone.end < position:
                return number + 1
        return next(iter(self._gone), self._next)

    def page_of(self, author: AuthorId, start: int, limit: int) -> tuple[list[Tombstone], int]:
        """Return tombstones of an author's events from a number on, and the number to continue from."""
        found: list[Tombstone] = []
        for number in range(max(start, next(iter(self._gone), self._next)), self._next):
            gone = self._gone[number]
            if gone.author == author:
                if len(found) == limit:
                    return found, number
                found.append(Tombstone(gone.event, gone.reason))
        return found, self._next

    def clear(self) -> None:
        """Forget all removed events."""
        for number in list(self._gone):
            self._forget(number)

    def _note(self, number: int, gone: GoneEvent) -> None:
        self._gone[number] = gone
        self._numbers[gone.event] = number
        self._next = number + 1

    def _forget(self, number: int) -> None:
        gone = self._gone.pop(number)
        if self._numbers.get(gone.event) == number:
            del self._numbers[gone.event]
        self._cells.delete(self._space, number.to_bytes(8, "big"))
