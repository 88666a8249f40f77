"""The rooms of a node, by id, and that they are its rooms after a restart too."""

from __future__ import annotations

from collections.abc import Iterator

from linnet.core.ids import EventId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Entry, Store
from linnet.event.event import Verified
from linnet.event.signing import decode_unit, encode_unit, recall_unit
from linnet.rooms.room import Room
from linnet.rooms.room_setup import Parts, Setting
from linnet.trace.records import Kind, Record

_ROOMS = "room.open"


def _write_create(store: Store, create: Verified) -> None:
    """Put a room's first event into its damaged place."""
    event, room = create.events[0], TopicId(create.head)
    at = store.log.kept(room).oldest or 0.0
    raw = encode_unit(create.unit)
    store.log.append(Entry(room, event.author, event.device, event.seq, 1, event.id, at, raw))


class Registry:
    """Rooms that are open here."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self._rooms: dict[TopicId, Room] = {}
        self.by_subscription: dict[int, Room] = {}
        self.get = self._rooms.get
        """The room of this id, if it is open."""

    def __iter__(self) -> Iterator[Room]:
        return iter(list(self._rooms.values()))

    def __contains__(self, room: object) -> bool:
        return room in self._rooms

    def open(self, create: Verified, newcomer: bool, now: float) -> Room:
        """Open a room that is new to this node, or was forgotten: then what its log holds is known still."""
        store = self.setting.context.store
        was_here = store.log.get(create.head) is not None
        room = self._rooms[TopicId(create.head)] = Room(Parts(create, self.setting))
        store.cells.put(_ROOMS, room.id, encode_unit(create.unit))
        if was_here:
            room.load(now)
            return room
        room.parts.memory.newcomer = newcomer
        room.begin(create, now)
        return room

    def reopen(self, now: float) -> None:
        """Read every room of before back from the store."""
        store, out = self.setting.context.store, self.setting.out
        for key, copy in list(store.cells.scan(_ROOMS)):
            entry = store.log.get(EventId(key))
            if entry is None and not copy:
                note = "its create event is not in the store"
                out.record(Record(Kind.DROPPED, TopicId(key), note=note))
                continue
            create = recall_unit(decode_unit(copy if entry is None else entry.raw))
            if entry is None:
                _write_create(store, create)
                note = "its create event, mended by a copy"
                out.record(Record(Kind.RESYNC, TopicId(key), create.head, reason=Reason.DAMAGED, note=note))
            elif not copy:  # Kept by a version that made no copy of it.
                store.cells.put(_ROOMS, key, entry.raw)
            room = self._rooms[TopicId(key)] = Room(Parts(create, self.setting))
            room.load(now)

    def forget(self, room: Room, now: float) -> None:
        """Have nothing to do with a room any more; its log stays."""
        del self._rooms[room.id]
        self.setting.context.store.cells.delete(_ROOMS, room.id)
        room.stop(now)
        for subscription in [number for number, of in self.by_subscription.items() if of is room]:
            del self.by_subscription[subscription]
            room.parts.readers.remove(subscription)
