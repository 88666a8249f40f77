"""Messages that cannot be read yet, by the epoch whose key opens them."""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.errors import MalformedMessage
from linnet.core.ids import EventId
from linnet.event.event import Event
from linnet.groups.ids import MemberId
from linnet.groups.sealing import read_clear
from linnet.rooms.room_store import RoomMemory


class Waiting:
    """What waits for which epoch. Bounded by whoever adds: it is no more than what is kept as unread."""

    def __init__(self, memory: RoomMemory, unread: Iterable[EventId]) -> None:
        self._memory = memory
        self._epochs: dict[tuple[MemberId, int], dict[EventId, int]] = {}
        for known in unread:
            event = memory.event(known)
            if event is not None:
                self.add(event)

    def add(self, event: Event) -> None:
        """A message waits; one that names no epoch waits for none."""
        try:
            member, epoch, index = read_clear(event.tail.clear or b"")
        except MalformedMessage:
            return
        self._epochs.setdefault((member, epoch), {})[event.id] = index

    def remove(self, event: Event) -> None:
        """A message was read, or never will be."""
        try:
            member, epoch, _ = read_clear(event.tail.clear or b"")
        except MalformedMessage:
            return
        waiting = self._epochs.get((member, epoch), {})
        waiting.pop(event.id, None)
        if not waiting:
            self._epochs.pop((member, epoch), None)

    def of_epoch(self, member: MemberId, epoch: int) -> list[Event]:
        """Those of one epoch in their author's order: keys that were passed over are kept for few."""
        waiting = self._epochs.get((member, epoch), {})
        events = (self._memory.event(known) for known in sorted(waiting, key=waiting.__getitem__))
        return [event for event in events if event is not None]

    def all(self) -> list[Event]:
        """All of them, each epoch in order."""
        return [event for member, epoch in list(self._epochs) for event in self.of_epoch(member, epoch)]
