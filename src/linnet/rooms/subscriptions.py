"""The subscriptions of one room at one node: all of them live on the log."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from linnet.core.effects import Deliver
from linnet.core.ids import AuthorId, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.delivery.items import Item, Overdue, Unreadable
from linnet.delivery.log_reader import LogReader
from linnet.delivery.subscription import Cursor, Window
from linnet.event.event import Event
from linnet.machine.outbox import Outbox
from linnet.rooms.commands import ReadRoom
from linnet.rooms.content import GROUP, HISTORY, REDACTION
from linnet.rooms.encryption.secrecy import Secrecy
from linnet.rooms.room_reader import RoomReader
from linnet.rooms.room_store import LATE, RoomMemory
from linnet.rooms.timeline import Timeline
from linnet.trace.records import Kind, Record

_TOLD, _SHOWN = "room.told", "room.shown.told"


class Readers:
    """Who reads the room here, and how far each of them is."""

    def __init__(
        self,
        room: TopicId,
        context: Context,
        memory: RoomMemory,
        out: Outbox,
        secrecy: Secrecy | None = None,
        timeline: Timeline | None = None,
    ) -> None:
        self._room = room
        self._out = out
        self._secrecy = secrecy
        self._timeline = timeline or Timeline()
        self._context = context
        self._memory = memory
        self._readers: dict[int, RoomReader] = {}
        self._names: dict[int, str | None] = {}
        self._told: dict[int, int] = {}
        """Up to which of the events that were read late each has been told."""
        self._shown_late: dict[int, int] = {}
        """The same for events that were hidden for their time, and shown since."""
        self.redacted: dict[EventId, AuthorId] = {}
        """Events that were taken back, and by whom."""

    def __len__(self) -> int:
        return len(self._readers)

    def __contains__(self, subscription: int) -> bool:
        return subscription in self._readers

    def is_named(self, name: str) -> bool:
        """Whether a durable subscription of this name is on."""
        return name in self._names.values()

    def add(self, command: ReadRoom) -> bool:
        """Begin a subscription; whether a durable one was found. It is handed what there is by `hand_log`."""
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
        key = self._timeline.key
        reader = RoomReader(self._room, window, cursor, after, command.live, shown, key, arranged)
        self._readers[command.subscription] = reader
        self._names[command.subscription] = command.name
        resumed = cursor is not None and cursor.resumed
        told = self._context.store.cells.get(_TOLD, self._room + (command.name or "").encode())
        self._told[command.subscription] = int.from_bytes(told or b"", "big") if resumed else self._latest()
        told = self._context.store.cells.get(_SHOWN, self._room + (command.name or "").encode())
        newest = next(reversed(self._memory.revealed), 0)
        self._shown_late[command.subscription] = int.from_bytes(told or b"", "big") if resumed else newest
        return resumed

    def hand_log(self, subscription: int) -> None:
        """Hand a subscription that has just begun what there is."""
        reader = self._readers[subscription]
        self._tell_repaired(subscription, reader)
        self._tell_revealed(subscription, reader)
        self._hand(reader.pump(self._context.store.log))

    def remove(self, subscription: int) -> None:
        """End a subscription; a durable one keeps its place."""
        reader = self._readers.pop(subscription, None)
        self._names.pop(subscription, None)
        self._told.pop(subscription, None)
        self._shown_late.pop(subscription, None)
        if reader is not None:
            self._hand(reader.window.end(None))

    def hand_event(self, position: int, event: Event) -> None:
        """Hand over an event that is in the log now."""
        for reader in self._readers.values():
            self._hand(reader.written(position, event))  # Whoever is slow waits in the log.

    def reveal(self, position: int, event: Event) -> None:
        """Hand over an event that was hidden for its time and is shown now."""
        newest = next(reversed(self._memory.revealed), 0)
        for subscription, reader in self._readers.items():
            self._shown_late[subscription] = newest
            self._hand(reader.reveal(position, event))

    def _tell_revealed(self, subscription: int, reader: RoomReader) -> None:
        """Hand over what a durable reader is past, was shown since, and may have missed by a crash."""
        for number, (id, position) in self._memory.revealed.items():
            if number <= self._shown_late[subscription]:
                continue
            self._shown_late[subscription] = number
            event = self._memory.event(id) if position <= reader.read else None
            if event is not None:
                self._hand(reader.reveal(position, event))

    def tell_overdue(self, item: Overdue) -> None:
        """Tell everyone who reads that a deadline has passed."""
        for reader in self._readers.values():
            if reader.window.ended:
                continue
            self._hand(reader.note(item))
            if reader.window.ended:  # Only what is no event waits in memory, so only here it may be too much.
                slow = Record(Kind.DROPPED, self._room, reason=Reason.SUBSCRIBER_SLOW)
                self._out.committed.record(slow)

    def tell_repaired(self) -> None:
        """Tell everyone of events that could not be read when they were handed over and can be now."""
        for subscription, reader in self._readers.items():
            self._tell_repaired(subscription, reader)

    def _tell_repaired(self, subscription: int, reader: LogReader) -> None:
        """Tell a reader what it was handed unread and not told since; a durable one also after a crash."""
        if self._secrecy is None or reader.window.ended:
            return
        for number, late in self._secrecy.keyring.repaired.items():
            if number <= self._told[subscription]:
                continue
            self._told[subscription] = number
            event = self._memory.event(late.event) if late.position <= reader.read else None
            seen = None if event is None else self._shown(event, state=False, history=True)
            if seen is not None:
                self._hand(reader.note(seen))

    def _latest(self) -> int:
        return 0 if self._secrecy is None else next(reversed(self._secrecy.keyring.repaired), 0)

    def handle_consumed(self, subscription: int, items: int) -> None:
        """Hand on what waits: the application is done with so many items."""
        reader = self._readers.get(subscription)
        if reader is None:
            return
        more = reader.handled(items, self._context.store.log)
        name = self._names[subscription]
        if name is not None and self._secrecy is not None and reader.window.done:
            told = self._told[subscription].to_bytes(8, "big")
            self._context.store.cells.put(_TOLD, self._room + name.encode(), told)
        if name is not None and self._memory.revealed and reader.window.done:
            shown = self._shown_late[subscription].to_bytes(8, "big")
            self._context.store.cells.put(_SHOWN, self._room + name.encode(), shown)
        self._hand(more)

    def _shown(self, event: Event, state: bool, history: bool) -> Event | Unreadable | None:
        """An event as a reader is to see it: nothing hidden, nothing that was taken back."""
        if event.kind in (GROUP, HISTORY):
            return None
        flag = self._memory.hidden.get(event.id)
        if flag is not None and not (history and flag == LATE):
            return None
        if not state and (event.tail.key is not None or event.kind == REDACTION):
            return None
        by = self.redacted.get(event.id)
        if by is not None:
            return Unreadable(replace(event, tail=replace(event.tail, body=b"")), Reason.REDACTED, by)
        return event if self._secrecy is None else self._secrecy.opening.shown(event)

    def _hand(self, deliveries: Iterable[Deliver[Item]]) -> None:
        """Have items handed over once what they tell is durable."""
        for each in deliveries:
            self._out.committed.deliver(each.subscription, each.items)
