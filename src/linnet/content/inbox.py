"""The matches that this node's subscriptions have taken and their readers have not handled yet.

The parts of content find the subscriptions that accept an event; here the event waits, in order and counted,
until the application has handled it. A reader is handed a window ahead; the number of waiting matches is
bounded, and those not taken are counted and reported. A subscription with a name is kept: its matches are
written down before their arrival is acknowledged, so that after a crash they are handed over again with the
same numbers, and never twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from msgspec import Struct, field, msgpack
from msgspec.structs import replace

from linnet.content.commands import NAME_BYTES, ContentItem, GroupAt, Match, Overflow, SubscriptionIs, Via
from linnet.content.config import ContentConfig
from linnet.core.errors import CellsDamaged, Refused
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.machine.outbox import Committed, Outbox
from linnet.trace.records import Kind, Record


class Wanted(Struct, frozen=True):
    """A subscription's predicate, and the ways by which its events come."""

    predicate: str
    via: Via = Via.SCOUT
    at: GroupAt | None = None

    def __str__(self) -> str:
        return f"{self.predicate} by {self.via.value}" + ("" if self.at is None else f" at {self.at.group}")


class _Box(Struct, eq=False):
    """One subscription, with the items that wait in it."""

    name: str | None
    wanted: Wanted
    next: int = 1
    attribute: str = ""
    items: deque[ContentItem] = field(default_factory=deque)
    """Items that the reader has not handled yet."""
    bytes: int = 0
    handed: int = 0
    """How many of these were handed to the reader."""
    reader: int | None = None
    lost: int = 0

    def add(self, item: ContentItem) -> None:
        self.items.append(item)
        self.bytes += len(item.body) if isinstance(item, Match) else 0

    def pop(self) -> ContentItem:
        item = self.items.popleft()
        self.bytes -= len(item.body) if isinstance(item, Match) else 0
        return item


class Inbox:
    """All subscriptions of the application. `number` identifies one of them within the node."""

    def __init__(self, config: ContentConfig, cells: Cells, out: Outbox) -> None:
        self._config = config
        self._out = out
        self._store = KeptStore(cells, config.remembered)
        self._boxes: dict[int, _Box] = {}
        self.readers: dict[int, int] = {}
        """The subscription of each reader, by the reader's number."""
        self._last = 0
        for name, kept in self._store.subscriptions():
            self._boxes[self._numbered()] = _Box(name, Wanted(kept.predicate, kept.via, kept.at), kept.next)
        named = {box.name: box for box in self._boxes.values()}
        for name, item in self._store.items():
            if name in named:
                named[name].add(item)

    @property
    def kept(self) -> list[tuple[int, Wanted]]:
        """The kept subscriptions: the number of each, and what it wants."""
        return [(number, box.wanted) for number, box in self._boxes.items() if box.name is not None]

    @property
    def is_keeping(self) -> bool:
        """Whether matches have to be durable before their arrival may be acknowledged."""
        return any(box.name is not None for box in self._boxes.values())

    def promise(self) -> Outbox | Committed:
        """Return the outbox for acknowledgements: sent at once, or when the taken matches are durable."""
        return self._out.committed if self.is_keeping else self._out

    def find(self, name: str) -> int | None:
        """Return the number of a kept subscription; None if there is none of this name."""
        return next((number for number, box in self._boxes.items() if box.name == name), None)

    def open(self, reader: int, wanted: Wanted, name: str | None = None) -> tuple[int, bool]:
        """Open a subscription for a reader; return its number, and whether it was kept before."""
        if reader in self.readers:
            raise Refused(Reason.IN_USE, f"there is a reader {reader} already")
        number = None if name is None else self.find(name)
        if number is not None:
            box = self._boxes[number]
            if box.wanted != wanted:
                raise Refused(Reason.IN_USE, f"{name!r} is a subscription to {box.wanted}: forget it first")
            if box.reader is not None:
                raise Refused(Reason.IN_USE, f"{name!r} is being read already")
        else:
            if name is not None and not 0 < len(name.encode()) <= NAME_BYTES:
                raise Refused(Reason.MALFORMED, f"a name has 1 to {NAME_BYTES} bytes")
            box = _Box(name, wanted)
        is_there = number is not None
        if number is None:
            number = self._numbered()
            self._boxes[number] = box
            if name is not None:
                self._keep(name, box)
        box.reader = reader
        self.readers[reader] = number
        return number, is_there

    def note_attribute(self, number: int, attribute: str) -> None:
        """Note the attribute whose rendezvous a subscription goes to."""
        self._boxes[number].attribute = attribute

    def attribute(self, number: int) -> str:
        """Return the attribute whose rendezvous a subscription goes to."""
        return self._boxes[number].attribute

    def reader(self, number: int) -> int | None:
        """Return the reader of a subscription; None if it has none."""
        box = self._boxes.get(number)
        return None if box is None else box.reader

    def close(self, reader: int) -> int | None:
        """Detach a reader; return the number of its subscription if that ends with its reader."""
        number = self.readers.pop(reader)
        box = self._boxes[number]
        box.reader, box.handed = None, 0
        if box.name is not None:
            return None
        del self._boxes[number]
        return number

    def forget(self, number: int) -> int | None:
        """End a subscription for good, with the items that wait in it; return its reader, if it has one."""
        box = self._boxes.pop(number)
        if box.name is not None:
            for item in box.items:
                self._store.drop_item(box.name, item.number)
            self._store.drop(box.name)
        if box.reader is not None:
            del self.readers[box.reader]
        return box.reader

    def take(self, numbers: list[int], match: Match) -> None:
        """Take an event for all subscriptions that accept it; kept ones may have it from before a restart."""
        is_old = self._store.has_taken(match.event)
        for number in numbers:
            self._take(number, match, is_old)
        if self.is_keeping:
            self._store.take(match.event)

    def _take(self, number: int, match: Match, is_old: bool) -> None:
        box = self._boxes.get(number)
        if box is None:
            return
        if box.name is not None and is_old:
            self._out.record(Record(Kind.DUPLICATE, event=match.event, note="content: before a restart"))
            return
        room = len(box.items) < self._config.inbox
        if room and box.bytes + len(match.body) <= self._config.inbox_bytes:
            self._add(box, replace(match, number=box.next))
            self.hand(number)
            return
        box.lost += 1
        self._lose(box)
        note = "content: unread"
        self._out.record(Record(Kind.DROPPED, event=match.event, reason=Reason.QUEUE_FULL, note=note))
        self.hand(number)

    def hand(self, number: int) -> None:
        """Hand the reader of a subscription as many items as its window allows."""
        box = self._boxes[number]
        if box.reader is None:
            return
        some = [box.items[place] for place in range(box.handed, min(len(box.items), self._config.window))]
        if not some:
            return
        box.handed += len(some)
        (self._out if box.name is None else self._out.committed).deliver(box.reader, tuple(some))

    def consume(self, reader: int, items: int) -> int:
        """Drop so many more items that a reader has handled; return the number of its subscription."""
        number = self.readers[reader]
        box = self._boxes[number]
        if items > box.handed:
            raise Refused(Reason.TOO_MANY, f"{box.handed} items were handed over and not handled")
        box.handed -= items
        for _ in range(items):
            item = box.pop()
            if box.name is not None:
                self._store.drop_item(box.name, item.number)
        return number

    def status(self) -> dict[int, SubscriptionIs]:
        """Return the status of all subscriptions, by number."""
        return {
            number: SubscriptionIs(
                box.name,
                box.wanted.predicate,
                box.attribute,
                box.reader is not None,
                len(box.items),
                box.lost,
                box.wanted.via,
                box.wanted.at,
            )
            for number, box in self._boxes.items()
        }

    def _lose(self, box: _Box) -> None:
        last = box.items[-1] if box.items else None
        if isinstance(last, Overflow) and len(box.items) > box.handed:
            last = Overflow(last.number, last.count + 1, last.reason)
            box.items[-1] = last
            if box.name is not None:
                self._store.put_item(box.name, last)
            return
        self._add(box, Overflow(box.next, 1, Reason.QUEUE_FULL))

    def _add(self, box: _Box, item: ContentItem) -> None:
        box.add(item)
        box.next += 1
        if box.name is not None:
            self._store.put_item(box.name, item)
            self._keep(box.name, box)

    def _keep(self, name: str, box: _Box) -> None:
        self._store.put(name, Kept(box.wanted.predicate, box.next, box.wanted.via, box.wanted.at))

    def _numbered(self) -> int:
        self._last += 1
        return self._last


SUBSCRIPTIONS, ITEMS, TAKEN = "content_kept", "content_items", "content_taken"
_NUMBER_BYTES = 8
_encode = msgpack.Encoder().encode


class Kept(Struct, frozen=True, array_like=True):
    """A kept subscription as it is written down."""

    predicate: str
    next: int
    """The number of the next item that it takes."""
    via: Via = Via.SCOUT
    at: GroupAt | None = None


class _Row(Struct, frozen=True, array_like=True):
    match: Match | None
    lost: Overflow | None


_kept = msgpack.Decoder(Kept)
_row = msgpack.Decoder(_Row)


class KeptStore:
    """The cells in which kept subscriptions and their items are written down."""

    def __init__(self, cells: Cells, remembered: int) -> None:
        self._cells = cells
        self._remembered = remembered
        self._taken: dict[EventId, bytes] = {EventId(event): key for key, event in cells.scan(TAKEN)}
        """Events that were taken recently, the oldest first, with the key of each one's cell."""
        self._last = int.from_bytes(next(reversed(self._taken.values()), b""))

    def subscriptions(self) -> Iterator[tuple[str, Kept]]:
        """Return all kept subscriptions, by name."""
        for name, value in self._cells.scan(SUBSCRIPTIONS):
            yield name.decode(), _kept.decode(value)

    def items(self) -> Iterator[tuple[str, ContentItem]]:
        """Return all waiting items in their order, each with the name of its subscription."""
        for key, value in self._all_items():
            row = _row.decode(value)
            item = row.match if row.match is not None else row.lost
            if item is not None:
                yield key[1 : 1 + key[0]].decode(), item

    def _all_items(self) -> list[tuple[bytes, bytes]]:
        """Return the cells of all items in order, with a note of loss in place of each damaged match."""
        try:
            return list(self._cells.scan(ITEMS))
        except CellsDamaged as damage:
            known = {_key(name, 0)[:-_NUMBER_BYTES]: kept.next for name, kept in self.subscriptions()}
            rows = []
            for key in damage.keys:
                number = int.from_bytes(key[-_NUMBER_BYTES:])
                if number >= known.get(key[:-_NUMBER_BYTES], 0):
                    raise  # Nobody can tell whose it was: its key is damaged.
                rows.append((key, _encode(_Row(None, Overflow(number, 1, Reason.DAMAGED)))))
            for key, value in rows:
                self._cells.put(ITEMS, key, value)
            return sorted((*damage.sound, *rows))

    def put(self, name: str, kept: Kept) -> None:
        """Write a subscription down."""
        self._cells.put(SUBSCRIPTIONS, name.encode(), _encode(kept))

    def put_item(self, name: str, item: ContentItem) -> None:
        """Write down an item that waits."""
        row = _Row(item, None) if isinstance(item, Match) else _Row(None, item)
        self._cells.put(ITEMS, _key(name, item.number), _encode(row))

    def drop_item(self, name: str, number: int) -> None:
        """Delete an item that was handled."""
        self._cells.delete(ITEMS, _key(name, number))

    def drop(self, name: str) -> None:
        """Delete a subscription; the items that wait in it are deleted one by one before."""
        self._cells.delete(SUBSCRIPTIONS, name.encode())

    def has_taken(self, event: EventId) -> bool:
        """Return whether an event was taken already, perhaps before a restart."""
        return event in self._taken

    def take(self, event: EventId) -> None:
        """Remember that an event was taken, until many others were."""
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
