"""The log and the cells of one room in the store.

The log holds the room's events in causal order, since that is the order in which they are delivered.
Events that are valid but cannot be in that order yet (control events and our own, whose dependencies
are still on their way) are stored early, in cells.

The node's notes on people are stored here as well; rooms write them and do not read them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from linnet.core.errors import CellsDamaged
from linnet.core.ids import AuthorId, EventId, TopicId
from linnet.core.stores import Cells, Damage, Entry, Store
from linnet.event.event import Event, Unverified, Verified
from linnet.event.signing import decode_unit, encode_unit, recall_unit
from linnet.event.times import doubt, doubt_unit

_PAGE = 512
_REVEALED = 4096
"""The most late-shown events that are remembered, for durable subscriptions that lack them."""
_NEWCOMER = "room.newcomer"
_LEAVING = "room.leaving"
_DEPARTED = "room.departed"
_OVERFLOWED = "room.overflowed"

SOFT = b"s"
"""Stored, but not shown: it failed only against the state that was current here."""
FUTURE = b"f"
"""Stored and not shown by version 0.1.0, since its time was ahead of the clock. Its position follows."""
LATE = b"l"
"""Came after events that depend on it had been shown; part of history, not of live events."""


class Late(NamedTuple):
    """An event that was shown later than it came, and its position in the log."""

    event: EventId
    position: int


class LateEvents(dict[int, Late]):
    """The last events that were shown later than they came, numbered, for offline subscribers."""

    def __init__(self, space: str, cells: Cells, most: int) -> None:
        super().__init__()
        self._space = space
        self._cells = cells
        self._most = most
        for key, value in cells.scan(space):
            position = int.from_bytes(value[:8], "big")
            self[int.from_bytes(key, "big")] = Late(EventId(value[8:]), position)

    @property
    def newest(self) -> int:
        """The number of the last event; 0 if there is none."""
        return next(reversed(self), 0)

    def add(self, event: EventId, position: int) -> None:
        """Note that an event can be shown now."""
        number = self.newest + 1
        self[number] = Late(event, position)
        self._cells.put(self._space, number.to_bytes(8, "big"), position.to_bytes(8, "big") + event)
        if len(self) > self._most:
            oldest = next(iter(self))
            del self[oldest]
            self._cells.delete(self._space, oldest.to_bytes(8, "big"))


class RoomMemory:
    """The log and the cells of one room."""

    def __init__(self, room: TopicId, store: Store, rejected: int) -> None:
        self.room = room
        self._log = store.log
        self._cells = store.cells
        self._most_rejected = rejected
        name = room.hex()
        self._early, self._flags = f"room.early/{name}", f"room.flag/{name}"
        self._refused, self._gone = f"room.no/{name}", f"room.gone/{name}"
        self.hidden: dict[EventId, bytes] = {EventId(k): v for k, v in self._cells.scan(self._flags)}
        """The events of the log that are not shown live, with the flag that says why."""
        self.soft: dict[EventId, int] = {}
        """The events of the log that failed softly, with their positions."""
        self.future: dict[EventId, None] = {}
        """Events of the log that version 0.1.0 hid for their time, which must still be shown."""
        self.revealed = LateEvents(f"room.shown/{name}", self._cells, _REVEALED)
        """Events that were hidden and have been shown since."""
        self.rejected: dict[EventId, int] = {
            EventId(k): int.from_bytes(v, "big") for k, v in self._cells.scan(self._refused)
        }
        """The ids of refused events with their heights, so that each is judged only once."""

        self.expired: dict[EventId, None] = dict.fromkeys(EventId(k) for k, _ in self._cells.scan(self._gone))
        """The ids of events that no peer had any more when we asked for them."""
        self.damaged: dict[EventId, Damage] = {}
        """Events of the log that were found damaged at the start, and that have not come again."""
        self.followed: dict[EventId, None] = {}
        """The damaged events that no permission depends on: their followers name other control events."""
        self.held: dict[EventId, None] = {}
        """Events of the log that build on damaged control events and have no place until these are back."""

    @property
    def newcomer(self) -> bool:
        """Whether no member has shown us the history yet: events that relays lack then count as expired."""
        return self._cells.get(_NEWCOMER, self.room) is not None

    @newcomer.setter
    def newcomer(self, is_new: bool) -> None:
        self._mark(_NEWCOMER, is_new)

    @property
    def leaving(self) -> bool:
        """Whether we have left, and no other peer is known to know it."""
        return self._cells.get(_LEAVING, self.room) is not None

    @leaving.setter
    def leaving(self, is_leaving: bool) -> None:
        self._mark(_LEAVING, is_leaving)

    @property
    def departed_at(self) -> float | None:
        """The time when the application left the room, which stays until another peer knows it; or None."""
        kept = self._cells.get(_DEPARTED, self.room)
        return None if kept is None else int.from_bytes(kept, "big") / 1000

    @departed_at.setter
    def departed_at(self, at: float | None) -> None:
        if at is not None:
            self._cells.put(_DEPARTED, self.room, int(at * 1000).to_bytes(8, "big"))
        elif self.departed_at is not None:
            self._cells.delete(_DEPARTED, self.room)

    @property
    def overflowed(self) -> bool:
        """Whether waiting events were dropped for lack of room, although relays take them for received."""
        return self._cells.get(_OVERFLOWED, self.room) is not None

    @overflowed.setter
    def overflowed(self, is_so: bool) -> None:
        self._mark(_OVERFLOWED, is_so)

    def _mark(self, space: str, is_so: bool) -> None:
        known = self._cells.get(space, self.room) is not None
        if is_so and not known:
            self._cells.put(space, self.room, b"")
        elif known and not is_so:
            self._cells.delete(space, self.room)

    def events(self) -> Iterator[Verified]:
        """Yield the events of the log, from its beginning."""
        after = 0
        while True:
            found = self._log.read(self.room, after, _PAGE)
            self.damaged |= {damage.head: damage for damage in self._log.left_out}
            for position, entry in found:
                after = position
                if self.hidden.get(entry.head) == SOFT:
                    self.soft[entry.head] = position
                yield doubt_unit(recall_unit(decode_unit(entry.raw)), entry.stored_at)
            if len(found) < _PAGE:
                return

    def early(self) -> list[Verified]:
        """Return the events that were stored early, lowest first."""
        try:
            kept = list(self._cells.scan(self._early))
        except CellsDamaged as damage:
            self._forget_early(damage)
            kept = list(damage.sound)
        units = [recall_unit(decode_unit(raw)) for _, raw in kept]
        return sorted(units, key=lambda unit: (unit.events[0].tail.height or 0, unit.head))

    def _forget_early(self, damage: CellsDamaged) -> None:
        """Forget damaged early events: peers are asked for them again, and relays are read anew."""
        for key in damage.keys:
            self._cells.delete(self._early, key)
        self.overflowed = True

    def keep_early(self, verified: Verified) -> None:
        """Store an event that counts and cannot be in the log yet."""
        self._cells.put(self._early, verified.head, encode_unit(verified.unit))

    def append(self, verified: Verified, flag: bytes | None, now: float) -> int | None:
        """Append an event to the log; return its position, or None if it is there already."""
        event, unit = verified.events[0], verified.unit
        self._cells.delete(self._early, event.id)
        if self.is_written(event.id):
            self.damaged.pop(event.id, None)
            self.held.pop(event.id, None)
            flag = None  # It already has its flag.
        if self.expired.pop(event.id, self) is None:
            self._cells.delete(self._gone, event.id)
        entry = Entry(self.room, event.author, event.device, event.seq, 1, event.id, now, encode_unit(unit))
        position = self._log.append(entry)
        if flag is not None:
            self.hidden[event.id] = flag
            self._cells.put(self._flags, event.id, flag)
        if self.hidden.get(event.id) == SOFT and event.id not in self.soft:
            self.soft[event.id] = self._place_of(event.id) if position is None else position
        return position

    def _place_of(self, event: EventId) -> int:
        """Return the position of an event that was damaged and is in its old place again."""
        after = 0
        while found := self._log.read(self.room, after, _PAGE):
            for position, entry in found:
                if entry.head == event:
                    return position
                after = position
        return after

    def is_shown(self, event: EventId) -> bool:
        """Return whether an event of the log is shown, live or as history."""
        return self.hidden.get(event, b"")[:1] not in (SOFT, FUTURE)

    def is_future(self, event: EventId) -> bool:
        """Return whether an event of the log is hidden only for its time."""
        return self.hidden.get(event, b"")[:1] == FUTURE

    def reveal(self, event: EventId) -> int:
        """Show an event that was hidden; return its position in the log."""
        flag = self.hidden.pop(event)
        position = self.soft.pop(event) if flag == SOFT else int.from_bytes(flag[1:], "big")
        self.future.pop(event, None)
        self._cells.delete(self._flags, event)
        self.revealed.add(event, position)
        return position

    def is_written(self, event: EventId) -> bool:
        """Return whether an event of the log waits for its place again, since part of the log is damaged."""
        return event in self.damaged or event in self.held

    @property
    def lacks_control(self) -> bool:
        """Whether control events are damaged, or may be, so that the members are unknown here."""
        return bool(self.held) or any(each not in self.followed for each in self.damaged)

    def get(self, event: EventId) -> Unverified | None:
        """Return the stored unit of an event; None if it is not stored."""
        try:
            raw = self._cells.get(self._early, event)
        except CellsDamaged as damage:
            self._forget_early(damage)
            raw = None
        if raw is not None:
            return decode_unit(raw)
        entry = self._log.get(event)
        return None if entry is None or entry.topic != self.room else decode_unit(entry.raw)

    def event(self, event: EventId) -> Event | None:
        """Return a stored event; None if it is not stored."""
        unit = self.get(event)
        if unit is None:
            return None
        entry, known = self._log.get(event), recall_unit(unit).events[0]
        return known if entry is None else doubt(known, entry.stored_at)

    def expire(self, event: EventId) -> None:
        """Remember that no peer has an event any more; it may still come."""
        self.expired[event] = None
        self._cells.put(self._gone, event, b"")

    def reject(self, event: EventId, height: int) -> EventId | None:
        """Remember that an event was refused; return the oldest one if it had to be forgotten."""
        self.rejected[event] = height
        self._cells.put(self._refused, event, height.to_bytes(8, "big"))
        self._cells.delete(self._early, event)
        if len(self.rejected) <= self._most_rejected:
            return None
        oldest = next(iter(self.rejected))
        del self.rejected[oldest]
        self._cells.delete(self._refused, oldest)
        return oldest


_SPACE = "person.note"


def keep_note(cells: Cells, person: AuthorId, note: bytes) -> None:
    """Store a note on a person, and replace the earlier one."""
    cells.put(_SPACE, person, note)


def notes(cells: Cells) -> dict[AuthorId, bytes]:
    """Return all notes on people."""
    return {AuthorId(key): note for key, note in cells.scan(_SPACE)}
