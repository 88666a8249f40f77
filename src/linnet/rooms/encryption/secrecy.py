"""The keys of one encrypted room at one device: what holds them, what is followed, what is opened."""

from __future__ import annotations

from linnet.core.ids import EventId, TopicId
from linnet.delivery.context import Context
from linnet.event.event import Event
from linnet.groups import agreement
from linnet.machine.outbox import Outbox
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.content import GROUP, Newcomers
from linnet.rooms.encryption.following import Following
from linnet.rooms.encryption.holding import Holding
from linnet.rooms.encryption.opening import Opening
from linnet.rooms.room_store import RoomMemory


class Secrecy(Holding):
    """The group of one room, as this device has it, with what follows its operations and opens messages."""

    def __init__(
        self,
        room: TopicId,
        context: Context,
        control: ControlDag,
        memory: RoomMemory,
        newcomers: Newcomers,
        out: Outbox,
    ) -> None:
        super().__init__(room, context, control, memory, out)
        self.newcomers = newcomers
        self.opening = Opening(room, self, memory, context.entropy, newcomers)
        self.following = Following(room, self, memory, self.opening, out)

    def follow_own(self, draft: agreement.Draft, op: EventId, now: float) -> None:
        """Follow an operation of our own that is out."""
        self.following.follow_own(draft, op, now)

    def follow(self, event: Event, position: int | None, now: float) -> None:
        """Follow an event that has its place if it is of the group, open it if it is sealed."""
        if event.kind == GROUP:
            self.following.follow(event, now)
        else:
            self.opening.open_event(event, position, now)
