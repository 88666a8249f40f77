"""The stored events of one room: all of its control events, and all others for a limited time.

Control events are in the log under the room itself and are never evicted. All others are under two topics
derived from it, one for events from peers and one for events from relays, so that retention and capacity
touch nothing else, and forwarding reads only events from peers. The position in the log, which grows with
every unit, is the cursor (docs/adr/0011).

Events are kept for as long as the room's state says, alike at all of its relays. Operations on the room's
keys are under two more topics, since they have a rule of their own: they are kept until every device that
needs them has them. The room's retention does not apply to them, since a device that was offline cannot read
later messages without them; nor are they deleted as soon as all have read them, since a device that crashed
may ask again. The relay waits for devices of joined people that take part in the keys, and for people who
have no such device yet. The wait is bounded in time, and to the newest operations up to a number; a device
that has missed more has to be added to the keys anew. The content of an operation is never read.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterator
from heapq import merge

import msgspec
from msgspec import Struct

from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Entry, Store
from linnet.delivery.context import CardBook
from linnet.event.event import Event, Unverified, Verified
from linnet.event.signing import decode_unit, encode_unit, recall_unit
from linnet.machine.outbox import Outbox
from linnet.rooms.auth.control_graph import ControlDag
from linnet.rooms.auth.room_state import RETENTION_KEY
from linnet.rooms.chunk_store import StoredChunks
from linnet.rooms.config import RelayLimits
from linnet.rooms.event_types import GROUP, Retention
from linnet.rooms.messages import RoomTimer
from linnet.rooms.relay.access_control import Caller
from linnet.rooms.relay.event_index import (
    Budget,
    GoneEvent,
    GroupDevices,
    GroupShelf,
    Shelved,
    Tombstones,
    Usage,
    key_of,
)
from linnet.rooms.relay.frontier import Frontier
from linnet.rooms.relay_statements import HeldEvent
from linnet.trace.records import Kind, Record

EVICT_UNITS = 1024
"""The most units that one pass removes, which bounds the time that it takes."""
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
        self.room = room
        self._out = out
        self._log = store.log
        self._cells = store.cells
        self._cards = cards
        self.topics = (derive_topic(room, b"peers"), derive_topic(room, b"relays"))
        """The topics of the log for events from peers, and for events from relays."""
        self.group_topics = (derive_topic(room, b"group peers"), derive_topic(room, b"group relays"))
        """The same two topics for operations on keys."""
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
        """The control events with their positions."""
        self._forwarded: list[tuple[int, EventId]] = [
            (int.from_bytes(key, "big"), EventId(value)) for key, value in store.cells.scan(self._ours)
        ]
        # Control events that came from peers, for the other relays.
        self.frontier = Frontier(room, store.cells)
        self.left_out: tuple[EventId, ...] = ()
        """The events that the last `read` left out because they are damaged."""
        self.lacking: dict[EventId, None] = {}
        """Control events that the log has lost to damage, and those that build on them."""

    def restore(self) -> Iterator[Event]:
        """Yield the control events of the log, the create event first.

        Damaged events are noted as lacking. The create event, without which there is no room, has a copy.
        """
        after = 0
        copy = self._cells.get(_CREATE, self.room)
        if copy is not None:
            create = recall_unit(decode_unit(copy))
            if self._log.get(create.head) is None:
                self._append(self.room, create, self._log.kept(self.room).oldest or 0.0)
            yield create.events[0]
        while page := self._log.read(self.room, after, _PAGE):
            self.lacking |= {damage.head: None for damage in self._log.left_out}
            for after, entry in page:
                if copy is None:
                    copy = entry.raw
                    self._cells.put(_CREATE, self.room, copy)
                self.control[entry.head] = after
                yield recall_unit(decode_unit(entry.raw)).events[0]

    def mark_lacking(self, event: EventId) -> None:
        """Count a control event as lacking until it comes again: it builds on one that is lacking."""
        self.control.pop(event, None)
        self.lacking[event] = None

    @property
    def first(self) -> int:
        """The position of the create event: a reader before it has seen nothing."""
        return next(iter(self.control.values()), 0)

    @property
    def end(self) -> int:
        """The position of the newest unit of the whole log."""
        return self._log.end()

    @property
    def oldest(self) -> float | None:
        """The arrival time of the oldest event that the room's retention applies to; None without any."""
        kept = [self._log.kept(topic).oldest for topic in self.topics]
        return min((each for each in kept if each is not None), default=None)

    def position(self, event: EventId) -> int | None:
        """Return the position of an event, or None if it is not stored."""
        found = self.control.get(event, self.shelf.position(event))
        if found is not None:
            return found
        place = self._cells.get(self._at, event)
        return None if place is None else int.from_bytes(place, "big")

    @property
    def spare(self) -> int:
        """The bytes that may still be stored, for all rooms together."""
        return self._budget.bytes_left

    def unit(self, event: EventId, since: float) -> Unverified | None:
        """Return the unit of an event; None if not stored, or if retention applies and it came earlier."""
        if self.position(event) is None:
            return None
        entry = self._log.get(event)
        if entry is None or (entry.topic in self.topics and entry.stored_at < since):
            return None
        return decode_unit(entry.raw)

    def floor_since(self, since: float) -> int:
        """Return the position up to which messages may be gone, or are given out no more, at this time."""
        return max(self.floor, *(self._log.since(topic, since) for topic in self.topics))

    def claim(self, event: EventId) -> HeldEvent | None:
        """Return what may be signed of an event: that it is kept; None if it is not, or for a while only."""
        position = self.position(event)
        if position is None or event in self.shelf or self._log.get(event) is None:
            return None
        return HeldEvent(event, position, event in self.control)

    def read(self, after: int, since: float, limit: int) -> list[Placed]:
        """Return units past a position, oldest first; messages only if they came since a time."""
        self.left_out = ()
        control = self._read(self.room, after, limit)
        cached = [self._read(topic, self._past(topic, after, since), limit) for topic in self.topics]
        groups = [self._read(topic, after, limit) for topic in self.group_topics]
        return list(merge(control, *cached, *groups, key=lambda placed: placed[0]))[:limit]

    def from_peers(self, after: int, since: float, limit: int) -> list[Placed]:
        """Return the units past a position that must be forwarded to the other relays."""
        start = bisect_right(self._forwarded, after, key=lambda place: place[0])
        control: list[Placed] = []
        for position, event in self._forwarded[start : start + limit]:
            entry = self._log.get(event)
            if entry is not None:
                control.append((position, entry))
        cached = self._log.read(self.topics[0], self._past(self.topics[0], after, since), limit)
        groups = self._log.read(self.group_topics[0], after, limit)
        return list(merge(control, cached, groups, key=lambda placed: placed[0]))[:limit]

    def keep_control(self, verified: Verified, from_peer: bool, now: float) -> int:
        """Store a control event; return its position."""
        is_back = self.lacking.pop(verified.head, self) is None
        position = self._append(self.room, verified, now)
        self.control[verified.head] = position
        if from_peer and not is_back:  # An event that was stored before has been noted for forwarding.
            self._forwarded.append((position, verified.head))
            self._cells.put(self._ours, position.to_bytes(8, "big"), verified.head)
        return position

    def keep(self, verified: Verified, from_peer: bool, now: float) -> int:
        """Store any other event, for which the caller has made room; return its position."""
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
        """Forget the control events to forward up to a position that all other relays have reached."""
        gone = bisect_right(self._forwarded, position, key=lambda place: place[0])
        for place, _ in self._forwarded[:gone]:
            self._cells.delete(self._ours, place.to_bytes(8, "big"))
        del self._forwarded[:gone]

    def expire_before(self, before: float) -> None:
        """Expire a bounded part of the events that came before a time."""
        gone = [entry for topic in self.topics for entry in self._log.evict(topic, before, None, EVICT_UNITS)]
        self._let_go(gone, Kind.EXPIRED, Reason.RETENTION)

    def make_room(self, size: int, most: int) -> bool:
        """Evict the oldest events until `size` more bytes fit; return False if they cannot."""
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
        """Remove these numbers of the oldest group events that came from peers, and from relays.

        `lost` is the position of the last of them that some device had not read: a reader before it has
        missed it.
        """
        gone = [
            entry
            for topic, count in zip(self.group_topics, counts, strict=True)
            for entry in self._log.evict(topic, None, 0, count)
        ]
        self.floor = max(self.floor, lost)
        self._let_go(gone, kind, reason)

    def forget_some(self, reason: Reason) -> bool:
        """Remove a bounded part of everything, control events too; return False if nothing was left."""
        gone: list[Entry] = []
        for topic in (*self.topics, *self.group_topics):
            gone += self._log.evict(topic, None, 0, EVICT_UNITS)
        if gone:
            self._let_go(gone, Kind.EVICTED, reason)
            return True
        control = self._log.evict(self.room, None, 0, EVICT_UNITS)
        for entry in control:
            self.control.pop(entry.head, None)
            self._record(Kind.EVICTED, recall_unit(decode_unit(entry.raw)), entry, reason)
        if not control:
            self.note_forwarded(self.end)
            self.tombstones.clear()
            self.devices.clear()
            self._cells.delete(_META, self.room)
            self._cells.delete(_CREATE, self.room)
            self.frontier.forget()
        return bool(control)

    def _append(self, topic: TopicId, verified: Verified, now: float) -> int:
        unit, event = verified.unit, verified.events[0]
        entry = Entry(topic, event.author, event.device, event.seq, 1, event.id, now, encode_unit(unit))
        position = self._log.append(entry)
        if position is None:
            position = self._found(topic, event.id)
        self.frontier.add(event.id, position)
        self._cards.keep(event.author, event.device)
        return position

    def _found(self, topic: TopicId, event: EventId) -> int:
        """Return the position of a unit that is already in the log, by a scan: there is no index by id."""
        after = 0
        while page := self._log.read(topic, after, _PAGE):
            for after, entry in page:
                if entry.head == event:
                    return after
        raise AssertionError(f"{event.hex()} was in the log before, under another topic")

    def _past(self, topic: TopicId, after: int, since: float) -> int:
        """Return the position to read a topic of messages from, to get those that came since a time."""
        return max(after, self._log.since(topic, since))

    def _read(self, topic: TopicId, after: int, limit: int) -> list[Placed]:
        found = self._log.read(topic, after, limit)
        self.left_out += tuple(damage.head for damage in self._log.left_out)
        return found

    def _oldest(self) -> Entry | None:
        """Remove and return the oldest unit of both topics; None if there is none."""
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
                # If it was damaged on the disk, its content has another id.
                self._unplace(entry.head, event, len(entry.raw))
            self.tombstones.add(GoneEvent(entry.head, event.author, reason, self._log.end()))
            self._record(kind, verified, entry, reason)
        if kind is Kind.EXPIRED:
            self.expired += len(entries)
        else:
            self.evicted += len(entries)
        if entries:
            self._cells.put(_META, self.room, _encode((self.floor, self.expired, self.evicted)))

    def _unplace(self, id: EventId, event: Event, size: int) -> None:
        position = self._cells.get(self._at, id)
        if position is not None:
            self.floor = max(self.floor, int.from_bytes(position, "big"))
            self._cells.delete(self._at, id)
        self.usage.remove_event(event.author, size, event.tail.key is not None)

    def _record(self, kind: Kind, verified: Verified, entry: Entry, reason: Reason) -> None:
        event, size = verified.events[0], len(entry.raw)
        place = (event.id, event.device, event.seq)
        self._out.record(Record(kind, self.room, *place, bytes=size, reason=reason, note=event.kind))


def derive_topic(room: TopicId, use: bytes) -> TopicId:
    """Return the topic of the log for one use of a room."""
    return TopicId(hashlib.sha256(b"linnet/relay/" + use + room).digest())


_MARGIN = 0.001
"""Seconds between the end of an event's lifetime and the timer, so that it is kept to its very end."""
AUTHORS = 2
"""One author may use at most the bytes divided by this, so as not to displace what others need."""


class ExpiryDue(RoomTimer, frozen=True, gc=False):
    """Timer: the oldest event that a relay keeps of a room may have reached the end of its lifetime."""


class EventRetention:
    """Expires the stored events and chunks of one room."""

    def __init__(
        self,
        groups: GroupRetention,
        chunks: StoredChunks,
        default: float,
        out: Outbox,
    ) -> None:
        self._timer = ExpiryDue(groups.dag.room)
        self._out = out
        self._dag = groups.dag
        self._cache = groups.cache
        self._chunks = chunks
        self.groups = groups
        self._default = default
        self._due: float | None = None
        """The time at which the timer fires; None if it is not set."""

    @property
    def lifetime(self) -> float | None:
        """The seconds that events are kept, or None if only capacity limits them."""
        fact = self._dag.view().get(RETENTION_KEY)
        if fact is None or not isinstance(fact.content, Retention):
            return self._default
        longest = fact.content.max_lifetime_ms
        return None if longest is None else longest / 1000

    def since(self, now: float) -> float:
        """Return the time of arrival before which no message or chunk is given out, removed or not."""
        lifetime = self.lifetime
        return 0.0 if lifetime is None else now - lifetime

    def expire_events(self, now: float) -> None:
        """Remove a bounded part of the events whose lifetime is over."""
        since = self.since(now)
        self._cache.expire_before(since)
        self._chunks.expire_before(since)
        self.groups.release_events(now)

    def handle_expiry(self, now: float) -> None:
        """Remove the events whose lifetime is over, now that the timer has fired."""
        self._due = None
        self.expire_events(now)

    def arm_timer(self, now: float) -> None:
        """Set the timer to the end of the oldest event's lifetime; to now if a pass did not remove all."""
        dues = [] if (group := self.groups.due()) is None else [group + _MARGIN]
        lifetime = self.lifetime
        if lifetime is not None:
            oldest = (self._cache.oldest, self._chunks.oldest)
            dues += [at + lifetime + _MARGIN for at in oldest if at is not None]
        due = min(dues, default=None)
        if due is None or (self._due is not None and self._due <= due):
            return
        self._due = max(due, now)
        self._out.set_timer(self._due - now, self._timer)

    def stop(self) -> None:
        """Cancel the timer: the room is not served any more."""
        if self._due is not None:
            self._due = None
            self._out.cancel_timer(self._timer)


class _Waited(Struct):
    """A device that has not read some of the kept group events."""

    key: bytes
    read: int
    lacks: int
    """The number of kept group events that it has not read."""

    def needs(self, item: Shelved) -> bool:
        """Return whether the device has not read this event."""
        return self.read < item.position and self.key != item.key


class GroupRetention:
    """Decides how long the `group` events (operations on keys) of one room are kept."""

    def __init__(self, dag: ControlDag, cache: EventCache, limits: RelayLimits) -> None:
        self._room = dag.room
        self.dag = dag
        self.cache = cache
        self._shelf = cache.shelf
        self._devices = cache.devices
        self._limits = limits
        self.stale = False
        """Whether events may have become removable since the last check."""

    def make_room(self, author: AuthorId, size: int) -> bool:
        """Evict the oldest until `size` more bytes of an author fit; return False if they cannot."""
        usage, most = self._shelf.usage, self._limits.group_bytes
        if usage.share_of(author).bytes + size > most // AUTHORS:
            return False
        if size > self.cache.spare + self.cache.usage.bytes + usage.bytes:
            return False
        while usage.bytes + size > most:
            self._evict_oldest()
        if size > self.cache.spare:
            # Keys matter more than messages: a device without keys can read no later message.
            self.cache.make_room(size, self.cache.usage.bytes + size)
        while size > self.cache.spare:
            self._evict_oldest()
        return True

    def note_kept(self, event: Event, position: int) -> None:
        """Note that a group event was stored, and that its device takes part in the keys."""
        self.stale = True
        view = self.dag.view()
        self._devices.add_reader(key_of(event), position, lambda key: view.may_hold_keys(*_device(key)))

    def note_read(self, caller: Caller, position: int) -> None:
        """Note that a member asks for the events past a position, and so has read those before."""
        self._devices.note_read(caller.person + caller.device, position)

    def due(self) -> float | None:
        """Return the time of the next check, if nothing happens before; None: no group event is kept."""
        if not self._shelf.items:
            return None
        longest = self._limits.group_least if self.stale else self._limits.group_lifetime
        return self._shelf.items[0].at + longest

    def release_events(self, now: float) -> None:
        """Remove a bounded part of the events that need not wait for any device."""
        self.stale = False
        if not self._shelf.items:
            return
        waited = self._waited()
        losers: list[tuple[bytes, Reason]] = []
        left, silent = len(self._shelf), self._is_somebody_silent()
        counts, lost, young = [0, 0], 0, False
        for item in self._shelf.items[:EVICT_UNITS]:
            late = item.at < now - self._limits.group_lifetime
            if not late and item.at > now - self._limits.group_least and left <= self._limits.group_pending:
                young = True  # A device that has read it may have crashed since, and may ask again.
                break
            needy = [each for each in waited if each.needs(item)]
            most = self._limits.group_pending
            if not late and ((silent and left <= most) or any(each.lacks <= most for each in needy)):
                break
            for each in needy:
                each.lacks -= 1
                if self._devices.note_loss(each.key, item.position):
                    losers.append((each.key, Reason.RETENTION if late else Reason.TOO_MANY))
            lost = item.position if needy or silent else lost
            left -= 1
            counts[item.side] += 1
        self.stale = young or sum(counts) == EVICT_UNITS
        self.cache.release_group_events(counts, lost, Kind.EXPIRED, Reason.RETENTION)
        for key, reason in losers:
            self._devices.record_loss(key, reason)

    def _evict_oldest(self) -> None:
        """Remove the oldest event although a device may need it."""
        item = self._shelf.items[0]
        counts = [1, 0] if item.side == 0 else [0, 1]
        needy = [each.key for each in self._waited() if each.needs(item)]
        losers = [key for key in needy if self._devices.note_loss(key, item.position)]
        self.cache.release_group_events(counts, item.position, Kind.EVICTED, Reason.QUOTA)
        for key in losers:
            self._devices.record_loss(key, Reason.QUOTA)

    def _waited(self) -> list[_Waited]:
        view = self.dag.view()
        found = []
        for key, reader in self._devices.readers.items():
            lacks = self._shelf.count_unread(key, reader.read)
            if lacks and view.may_hold_keys(*_device(key)):
                found.append(_Waited(key, reader.read, lacks))
        return found

    def _is_somebody_silent(self) -> bool:
        """Return whether a joined person has no device that takes part in the keys yet."""
        view = self.dag.view()
        speakers = {key[:32] for key in self._devices.readers}
        return any(one not in speakers and not view.is_relay_person(one) for one in view.joined())


def _device(key: bytes) -> tuple[AuthorId, DeviceId]:
    return AuthorId(key[:32]), DeviceId(key[32:])
