"""A subscription as an application holds it.

::

    async for event in node.subscribe("weather", since=0):
        ...

    async with node.subscribe("weather", name="archiver") as subscription:
        async for item in subscription.items():
            ...
            await subscription.acknowledge()

What counts as handled, and when the node is told, is said in `linnet.node.reader`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Any, ClassVar, Self, cast

from linnet.core.errors import Refused
from linnet.delivery.items import CaughtUp, Ended, Item, Missed
from linnet.event.event import Event
from linnet.identity.text import Sort, to_text
from linnet.node.background import Spawn
from linnet.node.batching import Ask
from linnet.node.reader import Reader
from linnet.rooms.commands import ReadRoom
from linnet.rooms.results import Reading
from linnet.streams.commands import Subscribe, Subscribed

ACKNOWLEDGE_EVERY = 256
"""Handled items after which the machine is told, if the application goes on without a pause."""

MISSED_KEPT = 1024
"""Ranges that `Subscription.missed` holds; all are handed over by `Subscription.items`."""


class Subscription(Reader[Item, Subscribed | Reading]):
    """One subscription; made by `Node.subscribe` or `Room.read`. For one reader."""

    TELL_ITEMS: ClassVar[int] = ACKNOWLEDGE_EVERY
    ANSWERS: ClassVar[tuple[type[Any], ...]] = (Subscribed, Reading)

    def __init__(
        self,
        command: Subscribe | ReadRoom,
        ask: Ask,
        spawn: Spawn,
        register: Callable[[Subscription, bool], None],
    ) -> None:
        super().__init__(command.subscription, command, ask, spawn, register)
        self._command = command
        self._within_block = False
        self.missed: deque[Missed] = deque(maxlen=MISSED_KEPT)
        """The ranges that could not be had, the latest of them."""
        self.missed_events = 0
        """How many events could not be had."""
        self.caught_up: CaughtUp | None = None
        """Set when history was handed over."""

    @property
    def of(self) -> str:
        """What is read: the name of a stream, or the id of a room."""
        command = self._command
        return command.stream if isinstance(command, Subscribe) else to_text(Sort.TOPIC, command.room)

    async def __aenter__(self) -> Self:
        await self.open()
        self._within_block = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __aiter__(self) -> AsyncIterator[Event]:
        """The events alone. `Refused` if the subscription is ended by anyone but us."""
        return cast("AsyncIterator[Event]", self._read(events_only=True))

    def items(self) -> AsyncIterator[Item]:
        """Everything that is handed over: events, what was missed, that history is over, the end."""
        return self._read(events_only=False)

    async def _read(self, events_only: bool) -> AsyncIterator[Item]:
        queue = self._queue
        try:
            await self.open()
            while True:
                if not queue:
                    await self._arrival()
                item = self._noted(queue.popleft())
                if type(item) is Event or not events_only:
                    yield item
                elif isinstance(item, Ended) and item.reason is not None:
                    raise Refused(item.reason, f"the subscription of {self.of!r} ended")
                self.handled(1)
                if isinstance(item, Ended):
                    return
        finally:
            if not self._within_block:
                await self.close()

    def _noted(self, item: Item) -> Item:
        self._taken += 1
        if type(item) is Event:
            return item
        match item:
            case Missed(first=first, last=last):
                self.missed.append(item)
                self.missed_events += last - first + 1
            case CaughtUp():
                self.caught_up = item
            case Ended():
                self.ended = item
            case _:
                pass
        return item
