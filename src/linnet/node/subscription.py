"""A subscription as an application holds it.

::

    async for event in node.subscribe("weather", since=0):
        ...

    async with node.subscribe("weather", name="archiver") as subscription:
        async for item in subscription.items():
            ...
            await subscription.acknowledge()

An item counts as handled when the next one is asked for. The node machine is told so now and then, which
makes room for more and moves a durable cursor; after a crash, items that it was not told of are handed over
again. `acknowledge` tells it at once and waits until that is durable.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, cast

from linnet.core.errors import LinnetError, Refused
from linnet.delivery.commands import Consumed, Unsubscribe
from linnet.delivery.items import CaughtUp, Ended, Item, Missed
from linnet.event.event import Event
from linnet.identity.text import Sort, to_text
from linnet.machine.commands import Ask, Command
from linnet.node.background import Spawn
from linnet.rooms.commands import Reading, ReadRoom
from linnet.streams.commands import Subscribe, Subscribed


class Opened(Protocol):
    """The machine's answer to a command that opens a subscription."""

    @property
    def resumed(self) -> bool:
        """Whether a durable subscription of this name existed before."""


T = TypeVar("T")
S = TypeVar("S", bound=Opened)


class Reader(Generic[T, S]):
    """One subscription. For one reader only."""

    TELL_ITEMS: ClassVar[int] = 256
    """Handled items after which the machine is told, if the application goes on without a pause."""

    def __init__(
        self, number: int, command: Command[S], ask: Ask, spawn: Spawn, register: Callable[[Any, bool], None]
    ) -> None:
        self.number = number
        """The number of this subscription at its node."""
        self._opening = command
        self._ask = ask
        self._spawn = spawn
        self._register = register
        self._queue: deque[T | Ended] = deque()
        self._arrived = asyncio.Event()
        self._state: S | None = None
        self._closed = False
        self._taken = 0
        self._untold = 0
        self._telling = False
        self._reports = asyncio.Lock()
        """Held while a report is under way. Another process may handle requests in another order."""
        self._within_block = False
        self.ended: Ended | None = None
        """Set when no more items follow."""

    @property
    def resumed(self) -> bool:
        """Whether a durable subscription of this name existed before."""
        return self._state is not None and self._state.resumed

    @property
    def unhandled(self) -> int:
        """The number of items that were taken and not handled yet."""
        return self._taken

    async def open(self) -> None:
        """Open the subscription if it is not open yet; raises `Refused` if it cannot be opened."""
        if self._state is not None or self._closed:
            return
        self._register(self, True)
        try:
            self._state = await self._ask(self._opening)
        except BaseException:
            self._register(self, False)
            raise

    async def close(self) -> None:
        """Report the handled items and close. A durable subscription keeps its place."""
        if self._closed:
            return
        self._closed = True
        if self._state is None:
            return
        try:
            await self._tell()
            await self._ask(Unsubscribe(self.number))
        except LinnetError:
            # The node is gone, and the subscription with it; unreported items will be handed over again.
            return
        finally:
            self._register(self, False)
            self.deliver((Ended(None),))

    async def __aenter__(self) -> Self:
        await self.open()
        self._within_block = True
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def take(self, most: int) -> list[T | Ended]:
        """Return the next items, at least one; they count as handled only after `handled`."""
        await self.open()
        if not self._queue:
            await self._arrival()
        return [self._noted(self._queue.popleft()) for _ in range(min(most, len(self._queue)))]

    async def _arrival(self) -> None:
        """Wait until an item is in the queue; a subscription that has ended yields its end again."""
        if self.ended is not None:
            self._queue.append(self.ended)
            return
        self._tell_later()
        self._arrived.clear()
        await self._arrived.wait()

    def handled(self, items: int) -> None:
        """Note that the application has handled this many of the items it took."""
        if items > self._taken:
            items = self._taken
        self._taken -= items
        self._untold += items
        if self._untold >= self.TELL_ITEMS:
            self._tell_later()

    async def consume(self, items: int) -> None:
        """Report this many taken items as handled; returns when that is durable."""
        self.handled(items)
        if not self._closed:
            await self._tell()

    async def acknowledge(self) -> None:
        """Report all items taken so far as handled; returns when that is durable."""
        await self.consume(self._taken)

    def deliver(self, items: Iterable[T | Ended]) -> None:
        """Take in items from the node. The machine bounds how many may wait here."""
        if self.ended is None:
            self._queue.extend(items)
            self._arrived.set()

    def _noted(self, item: T | Ended) -> T | Ended:
        self._taken += 1
        if isinstance(item, Ended):
            self.ended = item
        return item

    def _tell_later(self) -> None:
        # A reader that never waits gives the task no turn; one task is enough to report all that it read.
        if self._untold and not self._closed and not self._telling:
            self._telling = True
            self._spawn(self._tell_quietly(), f"acknowledge items of {self.number}")

    async def _tell_quietly(self) -> None:
        try:
            await self._tell()
        except LinnetError:
            return  # The node is stopping: the reader is told by the end of the subscription.

    async def _tell(self) -> None:
        """Report the handled items; returns when they, and those of earlier reports, are written."""
        async with self._reports:
            untold, self._untold, self._telling = self._untold, 0, False
            if untold:
                await self._ask(Consumed(self.number, untold))


MISSED_KEPT = 1024
"""The most ranges in `Subscription.missed`; `Subscription.items` hands over all of them."""


class Subscription(Reader[Item, Subscribed | Reading]):
    """One subscription; made by `Node.subscribe` or `Room.read`. For one reader only."""

    def __init__(
        self,
        command: Subscribe | ReadRoom,
        ask: Ask,
        spawn: Spawn,
        register: Callable[[Subscription, bool], None],
    ) -> None:
        super().__init__(command.subscription, command, ask, spawn, register)
        self._command = command
        self.missed: deque[Missed] = deque(maxlen=MISSED_KEPT)
        """The latest ranges that nobody could provide."""
        self.missed_events = 0
        """The number of events that exist and that nobody could provide."""
        self.caught_up: CaughtUp | None = None
        """Set when all history was handed over."""

    @property
    def of(self) -> str:
        """The name of the stream, or the id of the room, that is read."""
        command = self._command
        return command.stream if isinstance(command, Subscribe) else to_text(Sort.TOPIC, command.room)

    def __aiter__(self) -> AsyncIterator[Event]:
        """Yield the events alone. Raises `Refused` if the subscription was not ended by us."""
        return cast("AsyncIterator[Event]", self._read(events_only=True))

    def items(self) -> AsyncIterator[Item]:
        """Yield everything: events, missed ranges, the end of history, the end."""
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
                if not item.claimed_by:
                    self.missed_events += last - first + 1
            case CaughtUp():
                self.caught_up = item
            case Ended():
                self.ended = item
            case _:
                pass
        return item
