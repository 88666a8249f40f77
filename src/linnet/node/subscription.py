"""A subscription as an application holds it.

::

    async for event in node.subscribe("weather", since=0):
        ...

    async with node.subscribe("weather", name="archiver") as subscription:
        async for item in subscription.items():
            ...
            await subscription.acknowledge()

An event counts as handled when the next one is asked for. The node machine is told so now and
then, which makes room for more and moves the cursor of a durable subscription; after a crash
what it was not told of is handed over again. `acknowledge` tells it at once and waits until the
cursor is durable.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import cast

from linnet.core.errors import LinnetError, Refused
from linnet.core.reasons import Reason
from linnet.delivery.commands import Consumed, Declined, Unsubscribe
from linnet.delivery.items import CaughtUp, Ended, Item, Missed
from linnet.event.event import Event
from linnet.identity.text import Sort, to_text
from linnet.node.background import Spawn
from linnet.node.batching import Ask
from linnet.rooms.commands import ReadRoom
from linnet.rooms.results import Reading
from linnet.streams.commands import Subscribe, Subscribed

ACKNOWLEDGE_EVERY = 256
"""Handled items after which the machine is told, if the application goes on without a pause."""

MISSED_KEPT = 1024
"""Ranges that `Subscription.missed` holds; all are handed over by `Subscription.items`."""


class Subscription:
    """One subscription; made by `Node.subscribe` or `Room.read`. For one reader."""

    def __init__(
        self,
        command: Subscribe | ReadRoom,
        ask: Ask,
        spawn: Spawn,
        register: Callable[[Subscription, bool], None],
    ) -> None:
        self._command = command
        self._ask = ask
        self._spawn = spawn
        self._register = register
        self._queue: deque[Item] = deque()
        self._arrived = asyncio.Event()
        self._state: Subscribed | Reading | None = None
        self._closed = False
        self._within_block = False
        self._taken = 0
        self._untold = 0
        self._telling = False
        self.missed: deque[Missed] = deque(maxlen=MISSED_KEPT)
        """The ranges that could not be had, the latest of them."""
        self.missed_events = 0
        """How many events could not be had."""
        self.caught_up: CaughtUp | None = None
        """Set when history was handed over."""
        self.ended: Ended | None = None
        """Set when nothing more comes."""

    @property
    def number(self) -> int:
        """What this subscription is called at its node."""
        return self._command.subscription

    @property
    def of(self) -> str:
        """What is read: the name of a stream, or the id of a room."""
        command = self._command
        return command.stream if isinstance(command, Subscribe) else to_text(Sort.TOPIC, command.room)

    @property
    def resumed(self) -> bool:
        """Whether a durable subscription of this name was there before."""
        return self._state is not None and self._state.resumed

    async def open(self) -> None:
        """Subscribe, if that was not done yet; `Refused` tells why it cannot be."""
        if self._state is not None or self._closed:
            return
        self._register(self, True)
        try:
            result = await self._ask(self._command)
        except BaseException:
            self._register(self, False)
            raise
        if isinstance(result, Subscribed | Reading):
            self._state = result
            return
        self._register(self, False)
        self._closed = True
        if isinstance(result, Declined):
            raise Refused(result.reason, result.detail)
        raise Refused(Reason.BUG, f"subscribe was answered by {type(result).__name__}")

    async def close(self) -> None:
        """Tell what was handled and subscribe no more. A durable subscription keeps its place."""
        if self._closed:
            return
        self._closed = True
        if self._state is None:
            return
        try:
            if self._untold:
                await self._tell()
            await self._ask(Unsubscribe(self.number))
        except LinnetError:
            # The node is gone, and the subscription with it; what it was not told comes again.
            return
        finally:
            self._register(self, False)
            self.deliver((Ended(None),))

    async def __aenter__(self) -> Subscription:
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

    async def take(self, most: int) -> list[Item]:
        """The next items, at least one; they count as handled only by `handled`."""
        await self.open()
        if not self._queue:
            await self._arrival()
        return [self._noted(self._queue.popleft()) for _ in range(min(most, len(self._queue)))]

    async def _arrival(self) -> None:
        """Wait until something is in the queue; the end is there for whoever asks again."""
        if self.ended is not None:
            self._queue.append(self.ended)
            return
        self._tell_later()
        self._arrived.clear()
        await self._arrived.wait()

    def handled(self, items: int) -> None:
        """The application is done with so many of those it took."""
        if items > self._taken:
            items = self._taken
        self._taken -= items
        self._untold += items
        if self._untold >= ACKNOWLEDGE_EVERY:
            self._tell_later()

    @property
    def unhandled(self) -> int:
        """Items that were taken and not handled yet."""
        return self._taken

    async def acknowledge(self) -> None:
        """All that was taken so far is handled; returns when that is durable."""
        await self.consume(self._taken)

    async def consume(self, items: int) -> None:
        """So many of those that were taken are handled; returns when that is durable."""
        self.handled(items)
        if self._untold and not self._closed:
            await self._tell()

    def deliver(self, items: tuple[Item, ...]) -> None:
        """Take in what the node hands over. How much may wait here is bounded by the machine."""
        if self.ended is None:
            self._queue.extend(items)
            self._arrived.set()

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

    def _tell_later(self) -> None:
        # A reader that never waits gives the task no turn; one is enough to tell all that it read.
        if self._untold and not self._closed and not self._telling:
            self._telling = True
            self._spawn(self._tell_quietly(), f"acknowledge {self.of}")

    async def _tell_quietly(self) -> None:
        try:
            await self._tell()
        except LinnetError:
            return  # The node is stopping: the reader is told by the end of the subscription.

    async def _tell(self) -> None:
        untold, self._untold, self._telling = self._untold, 0, False
        if untold:
            result = await self._ask(Consumed(self.number, untold))
            if isinstance(result, Declined):
                raise Refused(result.reason, result.detail)
