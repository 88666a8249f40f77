"""The subscriptions of one room at one node, and the one order in which they get its history.

A subscription gets history in the room's order, then new events as they come. An event that comes later
than events that belong behind it is marked. A durable subscription gets the log as it was written, since it
resumes from its position in the log.

The order is the same at every node that has the same events: an event's time counts as later than those
of all events that it follows; events are sorted by that time and by their ids.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from linnet.core.ids import AuthorId, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import EventLog
from linnet.delivery.context import Context
from linnet.delivery.items import CaughtUp, Inserted, Item, Overdue, RelayFaulty, Unreadable
from linnet.delivery.subscriptions import Cursor, LogReader, Window
from linnet.event.event import Event
from linnet.event.signing import decode_unit, recall_unit
from linnet.event.times import doubt_unit, is_before
from linnet.machine.outbox import Outbox, Sink
from linnet.rooms.commands import ReadRoom
from linnet.rooms.encryption.room_group import RoomGroup
from linnet.rooms.event_types import GROUP, HISTORY, REDACTION
from linnet.rooms.room_store import LATE, RoomMemory
from linnet.trace.records import Kind, Record

_TOLD, _SHOWN = "room.told", "room.shown.told"


class RoomSubscriptions:
    """The subscriptions of one room, and how far each has read."""

    def __init__(
        self,
        room: TopicId,
        context: Context,
        memory: RoomMemory,
        out: Outbox,
        group: RoomGroup | None = None,
    ) -> None:
        self._room = room
        self._out = out
        self._group = group
        self.timeline = Timeline()
        self._context = context
        self._memory = memory
        self._readers: dict[int, RoomReader] = {}
        self._names: dict[int, str | None] = {}
        self.redacted: dict[EventId, AuthorId] = {}
        """The redacted events, each with the person who redacted it."""

    @property
    def _line(self) -> Sink:
        """The sink for items, which are delivered once the events that they tell of are durable."""
        return self._out.committed

    def is_named(self, name: str) -> bool:
        """Return whether a durable subscription of this name is active."""
        return name in self._names.values()

    def add(self, command: ReadRoom) -> bool:
        """Begin a subscription, which `hand_log` fills; return whether a durable one was resumed."""
        log = self._context.store.log
        cursor = None if command.name is None else Cursor(self._room, command.name, self._context.store.cells)
        after = log.end() if command.since is None else log.since(self._room, command.since)
        if command.since == 0:
            after = 0
        if cursor is not None and not cursor.resumed:
            cursor.begin(after)
        window: Window[Item] = Window(command.subscription, self._context.config)
        is_history = not command.live

        def shown(event: Event) -> Event | Unreadable | None:
            return self._shown(event, command.state, is_history)

        arranged = cursor is None and command.since is not None
        key = self.timeline.key
        reader = RoomReader(self._room, window, cursor, after, command.live, shown, key, arranged)
        self._readers[command.subscription] = reader
        self._names[command.subscription] = command.name
        if cursor is not None and cursor.resumed:
            cells, place = self._context.store.cells, self._room + (command.name or "").encode()
            reader.told.repaired = int.from_bytes(cells.get(_TOLD, place) or b"", "big")
            reader.told.revealed = int.from_bytes(cells.get(_SHOWN, place) or b"", "big")
            return True
        reader.told = Told(self._latest(), self._memory.revealed.newest)
        return False

    def hand_log(self, subscription: int) -> None:
        """Deliver the events of the log to a new subscription."""
        reader = self._readers[subscription]
        self._tell_repaired(reader)
        self._tell_revealed(reader)
        reader.hand_log(self._context.store.log, self._line)

    def remove(self, subscription: int) -> None:
        """End a subscription; a durable one keeps its position."""
        reader = self._readers.pop(subscription, None)
        self._names.pop(subscription, None)
        if reader is not None:
            reader.window.end(None, self._line)

    def hand_event(self, position: int, event: Event) -> None:
        """Deliver an event that is in the log now."""
        for reader in self._readers.values():
            reader.hand_written(position, (event,), self._line)  # For a slow reader it waits in the log.

    def reveal(self, position: int, event: Event) -> None:
        """Deliver an event that was hidden for its time and is shown now."""
        newest = self._memory.revealed.newest
        for reader in self._readers.values():
            reader.told.revealed = newest
            reader.reveal(position, event, self._line)

    def _tell_revealed(self, reader: RoomReader) -> None:
        """Deliver to a durable reader the revealed events that it may have missed by a crash."""
        for number, (id, position) in self._memory.revealed.items():
            if number <= reader.told.revealed:
                continue
            reader.told.revealed = number
            event = self._memory.event(id) if position <= reader.read else None
            if event is not None:
                reader.reveal(position, event, self._line)

    def tell_notice(self, item: Overdue | RelayFaulty) -> None:
        """Tell all subscriptions that a deadline has passed, or what is proved against a relay."""
        for reader in self._readers.values():
            if reader.window.ended:
                continue
            reader.tell(item, self._line)
            if reader.window.ended:  # Items that are no events wait in memory: only these may be too many.
                slow = Record(Kind.DROPPED, self._room, reason=Reason.SUBSCRIBER_SLOW)
                self._out.committed.record(slow)

    def tell_repaired(self) -> None:
        """Deliver to all subscriptions the messages that have become readable."""
        for reader in self._readers.values():
            self._tell_repaired(reader)

    def _tell_repaired(self, reader: RoomReader) -> None:
        """Deliver to a reader the messages that it had got unread; to a durable one also after a crash."""
        if self._group is None or reader.window.ended:
            return
        for number, late in self._group.texts.repaired.items():
            if number <= reader.told.repaired:
                continue
            reader.told.repaired = number
            event = self._memory.event(late.event) if late.position <= reader.read else None
            seen = None if event is None else self._shown(event, state=False, history=True)
            if seen is not None:
                reader.tell(seen, self._line)

    def _latest(self) -> int:
        return 0 if self._group is None else self._group.texts.repaired.newest

    def handle_consumed(self, subscription: int, items: int) -> None:
        """Deliver further items, now that the application has consumed this many."""
        reader = self._readers.get(subscription)
        if reader is None:
            return
        reader.handle_consumed(items, self._context.store.log, self._line)
        name = self._names[subscription]
        if name is None or not reader.window.done:
            return
        cells, place = self._context.store.cells, self._room + name.encode()
        if self._group is not None:
            cells.put(_TOLD, place, reader.told.repaired.to_bytes(8, "big"))
        if self._memory.revealed:
            cells.put(_SHOWN, place, reader.told.revealed.to_bytes(8, "big"))

    def _shown(self, event: Event, state: bool, history: bool) -> Event | Unreadable | None:
        """Return an event as a subscription shows it: None if hidden, without its body if redacted."""
        if event.kind in (GROUP, HISTORY):
            return None
        flag = self._memory.hidden.get(event.id)
        if flag is not None and not (history and flag == LATE):
            return None
        if not state and (event.tail.key is not None or event.kind == REDACTION):
            return None
        if self.timeline.is_before_cause(event.id):
            event = replace(event, doubtful=True)
        by = self.redacted.get(event.id)
        if by is not None:
            return Unreadable(replace(event, tail=replace(event.tail, body=b"")), Reason.REDACTED, by)
        return event if self._group is None else self._group.messages.shown(event)


Shown = Callable[[Event], Event | Unreadable | None]
"""A function that returns an event of the log as a reader sees it; None if it is hidden."""

_PAGE = 256
_REMEMBERED = 1024
"""The number of last delivered events to which the place of a late one is compared."""


class Told(Struct):
    """The numbers up to which a subscription knows of events that changed after their delivery."""

    repaired: int = 0
    """The number of the last known message that became readable late."""
    revealed: int = 0
    """The number of the last known event that was hidden for its time and shown since."""


class RoomReader(LogReader):
    """A subscription over the log of one room."""

    def __init__(
        self,
        room: TopicId,
        window: Window[Item],
        cursor: Cursor | None,
        after: int,
        live: bool,
        shown: Shown,
        key: Callable[[EventId], Key],
        arranged: bool,
    ) -> None:
        super().__init__(room, window, cursor, after)
        self._live = live
        self._shown = shown
        self._key = key
        self._arranges = arranged
        self._is_end_told = False
        self._history: deque[EventId] = deque()
        """The events of history that are still to be delivered, in the room's order."""
        self._late: dict[EventId, None] = {}
        """The events of `_history` that came later than an event that belongs behind them."""
        self._last: list[Key] = []
        self.told = Told()

    def hand_log(self, log: EventLog, out: Sink) -> None:
        """Deliver the events of the log, as far as the window has room."""
        if self._arranges:
            self._arranges = False
            self._arrange(log)
        while self._history and not self.window.ended:
            if not self.window.fits(1):
                return
            entry = log.get(self._history.popleft())
            if entry is not None:
                unit = doubt_unit(recall_unit(decode_unit(entry.raw)), entry.stored_at)
                self.hand_events(self.read, unit.events, out)
        super().hand_log(log, out)

    def _arrange(self, log: EventLog) -> None:
        """Sort the events of the log into the room's order."""
        latest: Key | None = None
        keys: list[Key] = []
        while page := log.read(self.topic, self.read, _PAGE):
            for position, entry in page:
                self.read = position
                key = self._key(entry.head)
                keys.append(key)
                if latest is not None and key < latest:
                    self._late[entry.head] = None
                else:
                    latest = key
        self._history.extend(event for _, event in sorted(keys))

    def hand_events(self, position: int, events: Sequence[Event], out: Sink) -> bool:
        """Deliver the events of the unit at a position that are not hidden; return whether there are any."""
        self.read = position
        is_handed = False
        for event in events:
            seen = self._shown(event)
            if seen is not None:
                self._hand_in_place(event.id, seen, out)
                is_handed = True
        return is_handed

    def note_end(self, log: EventLog, out: Sink) -> None:
        """Tell the reader, once, that it has caught up."""
        if self._is_end_told:
            return
        self._is_end_told = True
        self.tell(CaughtUp(log.kept(self.topic).oldest, False, None), out)
        if not self._live:
            self.window.end(None, out)

    def reveal(self, position: int, event: Event, out: Sink) -> None:
        """Show an event that was hidden; a reader that is past it gets it as an insertion."""
        if position > self.read:
            self.hand_written(position, (event,), out)
            return
        seen = None if self.window.ended else self._shown(event)
        if seen is not None and event.id not in self._history:
            self._hand_in_place(event.id, seen, out)

    def _hand_in_place(self, event: EventId, seen: Event | Unreadable, out: Sink) -> None:
        """Deliver an event, after an `Inserted` item if it belongs further up."""
        before = self._belongs_before(event)
        if before is not None:
            self.tell(Inserted(self.topic, event, before), out)
        self.tell(seen, out)

    def _belongs_before(self, event: EventId) -> EventId | None:
        """Return an event that was delivered, or came, earlier and belongs behind this one; or None."""
        key = self._key(event)
        place = bisect_right(self._last, key)
        behind = self._last[place][1] if place < len(self._last) else None
        insort(self._last, key)
        if len(self._last) > _REMEMBERED:
            del self._last[0]
        if event in self._late and self._history:
            return self._history[0]
        return behind


Key: TypeAlias = tuple[int, EventId]
"""A sort key: the time of an event, later than those that it follows, and its id."""


class Timeline:
    """The order of a room's events: a function of the events, not of the order in which they came."""

    def __init__(self) -> None:
        self._said: dict[EventId, tuple[int, tuple[EventId, ...]]] = {}
        """The author's time of each event, and the events that it follows."""
        self._times: dict[EventId, int] = {}
        self._absent: dict[EventId, None] = {}
        """The causes that are not here: they may still come as history."""
        self._doubtful: dict[EventId, None] = {}
        """The events whose times are doubtful: no other event is doubted because of one."""

    def add(self, event: Event, causes: tuple[EventId, ...]) -> None:
        """Add an event of the log."""
        if event.id in self._said:
            return
        self._said[event.id] = (event.time, causes)
        if event.doubtful:
            self._doubtful[event.id] = None
        self._absent |= {cause: None for cause in causes if cause not in self._said}
        if self._absent.pop(event.id, self) is None:
            self._times.clear()  # The events that follow it were placed without it.

    def key(self, event: EventId) -> Key:
        """Return the sort key of an event; an unknown event comes first."""
        if event not in self._said:
            return -1, event
        if event not in self._times:
            self._place(event)
        return self._times[event], event

    def is_before_cause(self, event: EventId) -> bool:
        """Return whether an event claims to be earlier than one that it follows, whose time can be right."""
        time, causes = self._said.get(event, (0, ()))
        return any(
            cause in self._said and cause not in self._doubtful and is_before(time, self._said[cause][0])
            for cause in causes
        )

    def _place(self, event: EventId) -> None:
        """Compute the times of an event and of all before it, without recursion: chains are long."""
        stack = [event]
        while stack:
            time, causes = self._said[stack[-1]]
            here = [cause for cause in causes if cause in self._said]
            unknown = [cause for cause in here if cause not in self._times]
            if unknown:
                stack += unknown
                continue
            self._times[stack.pop()] = max(time, 1 + max(map(self._times.__getitem__, here), default=-1))
