"""The stored events of one room: all of its control events, and for a while everything else.

Control events stand in the log under the room itself and are never evicted. The rest stands under two
topics derived from it, one for what came from peers and one for what came from relays, so that retention
and capacity touch nothing else, and forwarding reads just what came from peers. Operations on keys stand
under two more, since they are kept by a rule of their own (`retention`). The position in the log, which
grows with every unit, is the cursor (docs/adr/0011).
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterator
from heapq import merge

import msgspec
from msgspec import Struct

from linnet.core.ids import AuthorId, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells, Entry, Store
from linnet.delivery.cards import CardBook
from linnet.event.event import Event, Unverified, Verified
from linnet.event.signing import decode_unit, encode_unit, recall_unit
from linnet.machine.outbox import Outbox
from linnet.rooms.content import GROUP
from linnet.rooms.messages import Tombstone
from linnet.rooms.relay.group_events import GroupDevices, GroupShelf
from linnet.rooms.relay.usage import Budget, Usage
from linnet.trace.records import Kind, Record

EVICT_UNITS = 1024
"""Units that one pass removes at most, which bounds the time that it takes."""
_PAGE = 256
_META, _CREATE = "relay.meta", "relay.create"
_encode = msgspec.msgpack.Encoder().encode
_decode_meta = msgspec.msgpack.Decoder(tuple[int, int, int]).decode

Placed = tuple[int, Entry]


class EventCache:
    """Stores the units of one room."""

    def __init__(
        self,
        room: TopicId,
        store: Store,
        cards: CardBook,
        budget: Budget,
        tombstones: int,
        out: Outbox,
    ) -> None:
        self._room = room
        self._out = out
        self._log = store.log
        self._cells = store.cells
        self._cards = cards
        self.topics = (derive_topic(room, b"peers"), derive_topic(room, b"relays"))
        """From peers, from relays."""
        self.group_topics = (derive_topic(room, b"group peers"), derive_topic(room, b"group relays"))
        """The same for operations on keys."""
        self._at, self._ours = f"relay.at/{room.hex()}", f"relay.ours/{room.hex()}"
        self.usage = Usage(room, store.cells, budget)
        self.shelf = GroupShelf(room, store.cells, budget)
        self.devices = GroupDevices(room, store.cells, self.shelf, out)
        self._budget = budget
        self.tombstones = Tombstones(room, store.cells, tombstones)
        meta = store.cells.get(_META, room)
        self.floor, self.expired, self.evicted = (0, 0, 0) if meta is None else _decode_meta(meta)
        # Everything past `floor` that was ever kept is kept still.
        self.control: dict[EventId, int] = {}
        """Control events with their positions."""
        self._forwarded: list[tuple[int, EventId]] = [
            (int.from_bytes(key, "big"), EventId(value)) for key, value in store.cells.scan(self._ours)
        ]
        # Control events that came from peers, for the other relays.
        self.lacking: dict[EventId, None] = {}
        """Control events that the log should hold and does not give back, and those that build on them."""

    def restore(self) -> Iterator[Event]:
        """The control events of the log, the create event first.

        What is damaged is noted as lacking. The create event, without which there is no room, has a copy.
        """
        after = 0
        copy = self._cells.get(_CREATE, self._room)
        if copy is not None:
            create = recall_unit(decode_unit(copy))
            if self._log.get(create.head) is None:
                self._append(self._room, create, self._log.kept(self._room).oldest or 0.0)
            yield create.events[0]
        while page := self._log.read(self._room, after, _PAGE):
            self.lacking |= {damage.head: None for damage in self._log.left_out}
            for after, entry in page:
                if copy is None:
                    copy = entry.raw
                    self._cells.put(_CREATE, self._room, copy)
                self.control[entry.head] = after
                yield recall_unit(decode_unit(entry.raw)).events[0]

    def mark_lacking(self, event: EventId) -> None:
        """Count a control event as lacking until it comes again: it builds on one that is lacking."""
        self.control.pop(event, None)
        self.lacking[event] = None

    @property
    def first(self) -> int:
        """The position of the create event: whoever is before it has seen nothing."""
        return next(iter(self.control.values()), 0)

    @property
    def end(self) -> int:
        """The position of the newest unit of the whole log."""
        return self._log.end()

    @property
    def oldest(self) -> float | None:
        """When the oldest came of what the room's retention is for."""
        kept = [self._log.kept(topic).oldest for topic in self.topics]
        return min((each for each in kept if each is not None), default=None)

    def position(self, event: EventId) -> int | None:
        """The position of an event, or None if it is not stored."""
        found = self.control.get(event, self.shelf.position(event))
        if found is not None:
            return found
        place = self._cells.get(self._at, event)
        return None if place is None else int.from_bytes(place, "big")

    @property
    def spare(self) -> int:
        """Bytes that may still be kept, of all rooms together."""
        return self._budget.bytes_left

    def unit(self, event: EventId, since: float) -> Unverified | None:
        """The unit of an event, unless it is one that expires and came before a time."""
        if self.position(event) is None:
            return None
        entry = self._log.get(event)
        if entry is None or (entry.topic in self.topics and entry.stored_at < since):
            return None
        return decode_unit(entry.raw)

    def read(self, after: int, since: float, limit: int) -> list[Placed]:
        """Units of all sorts past a position, oldest first; messages only if they came since a time."""
        control = self._log.read(self._room, after, limit)
        cached = [self._cached(topic, after, since, limit) for topic in self.topics]
        groups = [self._log.read(topic, after, limit) for topic in self.group_topics]
        return list(merge(control, *cached, *groups, key=lambda placed: placed[0]))[:limit]

    def from_peers(self, after: int, since: float, limit: int) -> list[Placed]:
        """Units past a position that are to be forwarded to the other relays."""
        start = bisect_right(self._forwarded, after, key=lambda place: place[0])
        control: list[Placed] = []
        for position, event in self._forwarded[start : start + limit]:
            entry = self._log.get(event)
            if entry is not None:
                control.append((position, entry))
        cached = self._cached(self.topics[0], after, since, limit)
        groups = self._log.read(self.group_topics[0], after, limit)
        return list(merge(control, cached, groups, key=lambda placed: placed[0]))[:limit]

    def keep_control(self, verified: Verified, from_peer: bool, now: float) -> int:
        """Store a control event; returns its position."""
        is_back = self.lacking.pop(verified.head, self) is None
        position = self._append(self._room, verified, now)
        self.control[verified.head] = position
        if from_peer and not is_back:  # What was kept before is noted already, if anybody is to have it.
            self._forwarded.append((position, verified.head))
            self._cells.put(self._ours, position.to_bytes(8, "big"), verified.head)
        return position

    def keep(self, verified: Verified, from_peer: bool, now: float) -> int:
        """Store any other event, for which room was made; returns its position."""
        event, side = verified.events[0], 0 if from_peer else 1
        size = len(encode_unit(verified.unit))
        if event.kind == GROUP:
            position = self._append(self.group_topics[side], verified, now)
            self.shelf.add(event, position, size, side, now)
            return position
        position = self._append(self.topics[side], verified, now)
        self._cells.put(self._at, event.id, position.to_bytes(8, "big"))
        self.usage.add_event(event.author, size, event.tail.key is not None, now)
        return position

    def note_forwarded(self, position: int) -> None:
        """Forget which control events the other relays were to have, up to where all of them are."""
        gone = bisect_right(self._forwarded, position, key=lambda place: place[0])
        for place, _ in self._forwarded[:gone]:
            self._cells.delete(self._ours, place.to_bytes(8, "big"))
        del self._forwarded[:gone]

    def expire_before(self, before: float) -> None:
        """Expire what came before a time, at most so much at once."""
        gone = [entry for topic in self.topics for entry in self._log.evict(topic, before, None, EVICT_UNITS)]
        self._let_go(gone, Kind.EXPIRED, Reason.RETENTION)

    def make_room(self, size: int, most: int) -> bool:
        """Evict the oldest until so many bytes more fit; returns False if they cannot."""
        if size > most or size > self._budget.bytes_left + self.usage.bytes:
            return False
        gone: list[Entry] = []
        freed = 0
        over = max(self.usage.bytes + size - most, size - self._budget.bytes_left)
        while freed < over:
            entry = self._oldest()
            if entry is None:
                return False
            gone.append(entry)
            freed += len(entry.raw)
        self._let_go(gone, Kind.EVICTED, Reason.QUOTA)
        return True

    def release_group_events(self, counts: list[int], lost: int, kind: Kind, reason: Reason) -> None:
        """Remove so many of the oldest group events that came from peers, and from relays.

        `lost` is the position of the last of them that somebody had not read: who is before it has missed it.
        """
        gone = [
            entry
            for topic, count in zip(self.group_topics, counts, strict=True)
            for entry in self._log.evict(topic, None, 0, count)
        ]
        self.floor = max(self.floor, lost)
        self._let_go(gone, kind, reason)

    def forget_some(self, reason: Reason) -> bool:
        """Remove a bounded part of everything, control events too; returns False if nothing was left."""
        gone: list[Entry] = []
        for topic in (*self.topics, *self.group_topics):
            gone += self._log.evict(topic, None, 0, EVICT_UNITS)
        if gone:
            self._let_go(gone, Kind.EVICTED, reason)
            return True
        control = self._log.evict(self._room, None, 0, EVICT_UNITS)
        for entry in control:
            self.control.pop(entry.head, None)
            self._record(Kind.EVICTED, recall_unit(decode_unit(entry.raw)), entry, reason)
        if not control:
            self.note_forwarded(self.end)
            self.tombstones.clear()
            self.devices.clear()
            self._cells.delete(_META, self._room)
            self._cells.delete(_CREATE, self._room)
        return bool(control)

    def _append(self, topic: TopicId, verified: Verified, now: float) -> int:
        unit, event = verified.unit, verified.events[0]
        entry = Entry(topic, event.author, event.device, event.seq, 1, event.id, now, encode_unit(unit))
        position = self._log.append(entry)
        if position is None:
            position = self._found(topic, event.id)
        self._cards.keep(event.author, event.device)
        return position

    def _found(self, topic: TopicId, event: EventId) -> int:
        """The position of a unit that was in the log before, damaged or not: there is no index by id."""
        after = 0
        while page := self._log.read(topic, after, _PAGE):
            for after, entry in page:
                if entry.head == event:
                    return after
        raise AssertionError(f"{event.hex()} was in the log before, under another topic")

    def _cached(self, topic: TopicId, after: int, since: float, limit: int) -> list[Placed]:
        return self._log.read(topic, max(after, self._log.since(topic, since)), limit)

    def _oldest(self) -> Entry | None:
        """Remove the oldest unit of both caches."""
        heads = [(page[0][0], topic) for topic in self.topics if (page := self._log.read(topic, 0, 1))]
        if not heads:
            return None
        _, topic = min(heads)
        return self._log.evict(topic, None, 0, 1)[0]

    def _let_go(self, entries: list[Entry], kind: Kind, reason: Reason) -> None:
        for entry in entries:
            verified = recall_unit(decode_unit(entry.raw))
            event = verified.events[0]
            if event.id in self.shelf:
                self.shelf.remove(event, len(entry.raw))
            else:
                self._unplace(event, len(entry.raw))
            self.tombstones.add(GoneEvent(event.id, event.author, reason, self._log.end()))
            self._record(kind, verified, entry, reason)
        if kind is Kind.EXPIRED:
            self.expired += len(entries)
        else:
            self.evicted += len(entries)
        if entries:
            self._cells.put(_META, self._room, _encode((self.floor, self.expired, self.evicted)))

    def _unplace(self, event: Event, size: int) -> None:
        position = self._cells.get(self._at, event.id)
        if position is not None:
            self.floor = max(self.floor, int.from_bytes(position, "big"))
            self._cells.delete(self._at, event.id)
        self.usage.remove_event(event.author, size, event.tail.key is not None)

    def _record(self, kind: Kind, verified: Verified, entry: Entry, reason: Reason) -> None:
        event, size = verified.events[0], len(entry.raw)
        place = (event.id, event.device, event.seq)
        self._out.record(Record(kind, self._room, *place, bytes=size, reason=reason, note=event.kind))


def derive_topic(room: TopicId, use: bytes) -> TopicId:
    """A topic of the log that stands for one use of a room."""
    return TopicId(hashlib.sha256(b"linnet/relay/" + use + room).digest())


class GoneEvent(Struct, frozen=True, array_like=True, gc=False):
    """An event that was removed."""

    event: EventId
    author: AuthorId
    reason: Reason
    end: int
    """The end of the log when it went: whoever asks from a cursor before it has not been told."""


_decode_gone = msgspec.msgpack.Decoder(GoneEvent).decode


class Tombstones:
    """Remembers the removed events of one room by id, in the order of their removal.

    So an event that comes again is not taken for a new one, and its author learns what became of it. The
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

    def __len__(self) -> int:
        return len(self._gone)

    @property
    def next(self) -> int:
        """The number that the next one gets."""
        return self._next

    def add(self, gone: GoneEvent) -> None:
        """Remember one more."""
        if self._most <= 0:
            return
        self._cells.put(self._space, self._next.to_bytes(8, "big"), _encode(gone))
        self._note(self._next, gone)
        while len(self._gone) > self._most:
            self._forget(next(iter(self._gone)))

    def reason(self, event: EventId) -> Reason | None:
        """The reason why an event was removed, or None if it was not, or that is forgotten."""
        number = self._numbers.get(event)
        return None if number is None else self._gone[number].reason

    def first_untold(self, position: int) -> int:
        """The number of the first tombstone that the holder of a cursor may not have been told of."""
        for number, gone in reversed(self._gone.items()):
            if gone.end < position:
                return number + 1
        return next(iter(self._gone), self._next)

    def page_of(self, author: AuthorId, start: int, limit: int) -> tuple[list[Tombstone], int]:
        """Tombstones of an author's events from a number on, and the number to continue from."""
        found: list[Tombstone] = []
        for number in range(max(start, next(iter(self._gone), self._next)), self._next):
            gone = self._gone[number]
            if gone.author == author:
                if len(found) == limit:
                    return found, number
                found.append(Tombstone(gone.event, gone.reason))
        return found, self._next

    def clear(self) -> None:
        """Forget all of them."""
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
