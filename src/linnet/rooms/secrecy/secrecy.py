"""The keys of one encrypted room at one device: what holds them, what is followed, what is opened."""

from __future__ import annotations

from linnet.core.ids import EventId, TopicId
from linnet.delivery.context import Context
from linnet.event.event import Event
from linnet.groups import agreement
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.content import GROUP, Newcomers
from linnet.rooms.memory import RoomMemory
from linnet.rooms.secrecy.following import Following
from linnet.rooms.secrecy.holding import Holding
from linnet.rooms.secrecy.opening import Opening
from linnet.trace.records import Record


class Secrecy(Holding):
    """The group of one room, as this device has it, with what follows its operations and opens messages."""

    def __init__(
        self, room: TopicId, context: Context, control: ControlDag, memory: RoomMemory, newcomers: Newcomers
    ) -> None:
        super().__init__(room, context, control, memory)
        self.newcomers = newcomers
        self.opening = Opening(room, self, memory, context.entropy, newcomers)
        self.following = Following(room, self, memory, self.opening)

    def sent(self, draft: agreement.Draft, op: EventId, now: float) -> list[Record]:
        """An operation of our own is out."""
        return self.following.sent(draft, op, now)

    def placed(self, event: Event, position: int | None, now: float) -> list[Record]:
        """An event has its place: follow it if it is of the group, open it if it is sealed."""
        if event.kind == GROUP:
            return self.following.came(event, now)
        return self.opening.came(event, position, now)
