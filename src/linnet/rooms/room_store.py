"""What a room remembers in the store, beside the log of its events.

The log holds the room's events in causal order, since that is the order in which they are handed over.
Events that are valid but cannot be in that order yet (control events and our own, whose dependencies
are still on their way) are kept early, in cells.

What the node has noted of people, kept beside the rooms: the machines write it and do not read it.
"""

from __future__ import annotations

from collections.abc import Iterator

from linnet.core.ids import AuthorId, EventId, TopicId
from linnet.core.stores import Cells, Damage, Entry, Store
from linnet.event.event import Event, Unverified, Verified
from linnet.event.signing import decode_unit, encode_unit, recall_unit

_PAGE = 512
_REVEALED = 4096
"""Events shown later than they came that are remembered, for durable readers who have not had them yet."""
_NEWCOMER = "room.newcomer"
_LEAVING = "room.leaving"
_OVERFLOWED = "room.overflowed"

SOFT = b"s"
"""Kept, but not shown: it failed only against the state that was current here."""
FUTURE = b"f"
"""Kept, but not shown yet: its time is ahead of our clock. The position in the log follows."""
LATE = b"l"
"""Came after events that depend on it had been shown; part of history, not of what is live."""


class RoomMemory:
    """The store, as one room sees it."""

    def __init__(self, room: TopicId, store: Store, rejected: int) -> None:
        self._room = room
        self._log = store.log
        self._cells = store.cells
        self._most_rejected = rejected
        name = room.hex()
        self._early, self._flags = f"room.early/{name}", f"room.flag/{name}"
        self._refused, self._gone = f"room.no/{name}", f"room.gone/{name}"
        self.hidden: dict[EventId, bytes] = {EventId(k): v for k, v in self._cells.scan(self._flags)}
        """Events of the log that are not shown live, and why."""
        self.future: dict[EventId, int] = {}
        """Events of the log whose time was ahead of our clock, with that time."""
        self._shown_late = f"room.shown/{name}"
        self.revealed: dict[int, tuple[EventId, int]] = {
            int.from_bytes(k, "big"): (EventId(v[8:]), int.from_bytes(v[:8], "big"))
            for k, v in self._cells.scan(self._shown_late)
        }
        """Events that were hidden for their time and are shown since, the last ones, with their positions."""
        self.rejected: dict[EventId, int] = {
            EventId(k): int.from_bytes(v, "big") for k, v in self._cells.scan(self._refused)
        }
        """Ids of refused events with their heights, so that they are refused once."""

        self.expired: dict[EventId, None] = dict.fromkeys(EventId(k) for k, _ in self._cells.scan(self._gone))
        """Ids of events that nobody had any more when they were asked for."""
        self.damaged: dict[EventId, Damage] = {}
        """Events of the log that it did not give back at the start, and that have not come again."""
        self.followed: dict[EventId, None] = {}
        """Those of them that no rule hangs on: what follows them names other control events."""
        self.held: dict[EventId, None] = {}
        """Events of the log that build on damaged control events and have no place until these are back."""

    @property
    def newcomer(self) -> bool:
        """Whether no member has shown us the room's history yet: what relays lack is before our time."""
        return self._cells.get(_NEWCOMER, self._room) is not None

    @newcomer.setter
    def newcomer(self, is_new: bool) -> None:
        self._mark(_NEWCOMER, is_new)

    @property
    def leaving(self) -> bool:
        """Whether we have left and nobody is known to know it."""
        return self._cells.get(_LEAVING, self._room) is not None

    @leaving.setter
    def leaving(self, is_leaving: bool) -> None:
        self._mark(_LEAVING, is_leaving)

    @property
    def overflowed(self) -> bool:
        """Whether events were let go because too many waited; relays think that we have them."""
        return self._cells.get(_OVERFLOWED, self._room) is not None

    @overflowed.setter
    def overflowed(self, is_so: bool) -> None:
        self._mark(_OVERFLOWED, is_so)

    def _mark(self, space: str, is_so: bool) -> None:
        known = self._cells.get(space, self._room) is not None
        if is_so and not known:
            self._cells.put(space, self._room, b"")
        elif known and not is_so:
            self._cells.delete(space, self._room)

    def events(self) -> Iterator[Verified]:
        """The log, from its beginning."""
        after = 0
        while True:
            found = self._log.read(self._room, after, _PAGE)
            self.damaged |= {damage.head: damage for damage in self._log.left_out}
            for position, entry in found:
                after = position
                yield recall_unit(decode_unit(entry.raw))
            if len(found) < _PAGE:
                return

    def early(self) -> list[Verified]:
        """What was kept early, lowest first."""
        units = [recall_unit(decode_unit(raw)) for _, raw in self._cells.scan(self._early)]
        return sorted(units, key=lambda unit: (unit.events[0].tail.height or 0, unit.head))

    def keep_early(self, verified: Verified) -> None:
        """Keep what cannot be in the log yet."""
        self._cells.put(self._early, verified.head, encode_unit(verified.unit))

    def append(self, verified: Verified, flag: bytes | None, now: float) -> int | None:
        """Write an event whose turn has come; its position, or None if it is there already."""
        event, unit = verified.events[0], verified.unit
        self._cells.delete(self._early, event.id)
        if self.is_written(event.id):
            self.damaged.pop(event.id, None)
            self.held.pop(event.id, None)
            flag = None  # It has its flag.
        if self.expired.pop(event.id, self) is None:
            self._cells.delete(self._gone, event.id)
        entry = Entry(self._room, event.author, event.device, event.seq, 1, event.id, now, encode_unit(unit))
        position = self._log.append(entry)
        if flag == FUTURE:
            flag += (position or 0).to_bytes(8, "big")
            self.future[event.id] = event.time
        if flag is not None:
            self.hidden[event.id] = flag
            self._cells.put(self._flags, event.id, flag)
        return position

    def is_shown(self, event: EventId) -> bool:
        """Whether an event of the log is shown, live or as history."""
        return self.hidden.get(event, b"")[:1] not in (SOFT, FUTURE)

    def is_future(self, event: EventId) -> bool:
        """Whether an event of the log is hidden for its time alone."""
        return self.hidden.get(event, b"")[:1] == FUTURE

    def reveal(self, event: EventId) -> int:
        """The time of an event has come, or our clock is right again; its position in the log."""
        position = int.from_bytes(self.hidden.pop(event)[1:], "big")
        self.future.pop(event, None)
        self._cells.delete(self._flags, event)
        number = 1 + next(reversed(self.revealed), 0)
        self.revealed[number] = event, position
        self._cells.put(self._shown_late, number.to_bytes(8, "big"), position.to_bytes(8, "big") + event)
        if len(self.revealed) > _REVEALED:
            oldest = next(iter(self.revealed))
            del self.revealed[oldest]
            self._cells.delete(self._shown_late, oldest.to_bytes(8, "big"))
        return position

    def is_written(self, event: EventId) -> bool:
        """Whether the log holds an event that waits for its place again, since part of the log is damaged."""
        return event in self.damaged or event in self.held

    @property
    def lacks_control(self) -> bool:
        """Whether it is not known here who is of the room, since control events are damaged, or may be."""
        return bool(self.held) or any(each not in self.followed for each in self.damaged)

    def get(self, event: EventId) -> Unverified | None:
        """The unit of an event that is kept here."""
        raw = self._cells.get(self._early, event)
        if raw is not None:
            return decode_unit(raw)
        entry = self._log.get(event)
        return None if entry is None or entry.topic != self._room else decode_unit(entry.raw)

    def event(self, event: EventId) -> Event | None:
        """The event, if it is kept here."""
        unit = self.get(event)
        return None if unit is None else recall_unit(unit).events[0]

    def expire(self, event: EventId) -> None:
        """Remember that an event is gone; it may come all the same."""
        self.expired[event] = None
        self._cells.put(self._gone, event, b"")

    def reject(self, event: EventId, height: int) -> EventId | None:
        """Remember that an event is refused; the oldest of too many is forgotten, and returned."""
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
    """Keep what was noted of a person instead of what was before."""
    cells.put(_SPACE, person, note)


def notes(cells: Cells) -> dict[AuthorId, bytes]:
    """What is noted of everyone."""
    return {AuthorId(key): note for key, note in cells.scan(_SPACE)}
