"""The subscriptions of one room at one node: all of them live on the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec.structs import replace

from linnet.core.effects import AfterCommit, Deliver
from linnet.core.ids import AuthorId, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.delivery.items import Item, Overdue, Unreadable
from linnet.delivery.log_reader import LogReader
from linnet.delivery.subscription import Cursor, Window
from linnet.event.event import Event
from linnet.rooms.commands import ReadRoom
from linnet.rooms.content import GROUP, HISTORY, REDACTION
from linnet.rooms.memory import LATE, RoomMemory
from linnet.rooms.room_reader import RoomReader
from linnet.rooms.secrecy.secrecy import Secrecy
from linnet.rooms.timeline import Timeline
from linnet.trace.records import Kind, Record

_TOLD, _SHOWN = "room.told", "room.shown.told"

ReadersEffect: TypeAlias = AfterCommit[Deliver[Item] | Record]


class Readers:
    """Who reads the room here, and how far each of them is."""

    def __init__(
        self,
        room: TopicId,
        context: Context,
        memory: RoomMemory,
        secrecy: Secrecy | None = None,
        timeline: Timeline | None = None,
    ) -> None:
        self._room = room
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

    def add(self, command: ReadRoom) -> tuple[bool, list[ReadersEffect]]:
        """A new subscription; whether a durable one was found, and what it is handed first."""
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
        late = [
            *self._tell_repaired(command.subscription, reader),
            *self._tell_revealed(command.subscription, reader),
        ]
        return resumed, self._after_commit([*late, *reader.pump(log)])

    def remove(self, subscription: int) -> list[ReadersEffect]:
        """End a subscription; a durable one keeps its place."""
        reader = self._readers.pop(subscription, None)
        self._names.pop(subscription, None)
        self._told.pop(subscription, None)
        self._shown_late.pop(subscription, None)
        return [] if reader is None else self._after_commit(reader.window.end(None))

    def written(self, position: int, event: Event) -> list[Deliver[Item]]:
        """An event is in the log; to be performed after the commit."""
        effects: list[Deliver[Item]] = []
        for reader in self._readers.values():
            effects += reader.written(position, event)  # Whoever is slow waits in the log.
        return effects

    def revealed(self, position: int, event: Event) -> list[Deliver[Item]]:
        """An event that was hidden for its time is shown now; to be performed after the commit."""
        effects: list[Deliver[Item]] = []
        newest = next(reversed(self._memory.revealed), 0)
        for subscription, reader in self._readers.items():
            self._shown_late[subscription] = newest
            effects += reader.reveal(position, event)
        return effects

    def _tell_revealed(self, subscription: int, reader: RoomReader) -> list[Deliver[Item]]:
        """What a durable reader is past, was shown since, and may not have been handed before a crash."""
        effects: list[Deliver[Item]] = []
        for number, (id, position) in self._memory.revealed.items():
            if number <= self._shown_late[subscription]:
                continue
            self._shown_late[subscription] = number
            event = self._memory.event(id) if position <= reader.read else None
            if event is not None:
                effects += reader.reveal(position, event)
        return effects

    def overdue(self, item: Overdue) -> list[ReadersEffect]:
        """Tell everyone who reads that a deadline has passed."""
        effects: list[Deliver[Item] | Record] = []
        for reader in self._readers.values():
            if reader.window.ended:
                continue
            effects += reader.note(item)
            if reader.window.ended:  # Only what is no event waits in memory, so only here it may be too much.
                effects.append(Record(Kind.DROPPED, self._room, reason=Reason.SUBSCRIBER_SLOW))
        return self._after_commit(effects)

    def repaired(self) -> list[ReadersEffect]:
        """Events that could not be read when they were handed over can be now."""
        effects: list[Deliver[Item] | Record] = []
        for subscription, reader in self._readers.items():
            effects += self._tell_repaired(subscription, reader)
        return self._after_commit(effects)

    def _tell_repaired(self, subscription: int, reader: LogReader) -> list[Deliver[Item]]:
        """What this reader was handed unread and has not been told since; durable ones also after a crash."""
        if self._secrecy is None or reader.window.ended:
            return []
        effects: list[Deliver[Item]] = []
        for number, late in self._secrecy.keyring.repaired.items():
            if number <= self._told[subscription]:
                continue
            self._told[subscription] = number
            event = self._memory.event(late.event) if late.position <= reader.read else None
            seen = None if event is None else self._shown(event, state=False, history=True)
            if seen is not None:
                effects += reader.note(seen)
        return effects

    def _latest(self) -> int:
        return 0 if self._secrecy is None else next(reversed(self._secrecy.keyring.repaired), 0)

    def handled(self, subscription: int, items: int) -> list[ReadersEffect]:
        """The application is done with so many items."""
        reader = self._readers.get(subscription)
        if reader is None:
            return []
        effects = reader.handled(items, self._context.store.log)
        name = self._names[subscription]
        if name is not None and self._secrecy is not None and reader.window.done:
            told = self._told[subscription].to_bytes(8, "big")
            self._context.store.cells.put(_TOLD, self._room + name.encode(), told)
        if name is not None and self._memory.revealed and reader.window.done:
            shown = self._shown_late[subscription].to_bytes(8, "big")
            self._context.store.cells.put(_SHOWN, self._room + name.encode(), shown)
        return self._after_commit(effects)

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

    @staticmethod
    def _after_commit(effects: Sequence[Deliver[Item] | Record]) -> list[ReadersEffect]:
        return [AfterCommit(tuple(effects))] if effects else []
