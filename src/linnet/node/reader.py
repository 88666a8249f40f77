"""What a subscription of any sort hands over, as an application holds it.

An item counts as handled when the next one is asked for. The node machine is told so now and then, which
makes room for more and moves what is durable; after a crash what it was not told of is handed over again.
`acknowledge` tells it at once and waits until that is durable.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from linnet.core.errors import LinnetError
from linnet.delivery.commands import Consumed, Done, Unsubscribe
from linnet.delivery.items import Ended
from linnet.node.answers import expected
from linnet.node.background import Spawn
from linnet.node.batching import Ask
from linnet.peer.interface import Command


class Opened(Protocol):
    """What the machine answers to the command that opens a subscription."""

    @property
    def resumed(self) -> bool:
        """Whether a durable one of this name was there before."""


T = TypeVar("T")
S = TypeVar("S", bound=Opened)


class Reader(Generic[T, S]):
    """One subscription. For one reader."""

    TELL_ITEMS: ClassVar[int] = 256
    """Handled items after which the machine is told, if the application goes on without a pause."""
    ANSWERS: ClassVar[tuple[type[Any], ...]] = ()
    """What its command is answered by."""

    def __init__(
        self, number: int, command: Command, ask: Ask, spawn: Spawn, register: Callable[[Any, bool], None]
    ) -> None:
        self.number = number
        """What this subscription is called at its node."""
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
        self.ended: Ended | None = None
        """Set when nothing more comes."""

    @property
    def resumed(self) -> bool:
        """Whether a durable one of this name was there before."""
        return self._state is not None and self._state.resumed

    @property
    def unhandled(self) -> int:
        """Items that were taken and not handled yet."""
        return self._taken

    async def open(self) -> None:
        """Begin, if that was not done yet; `Refused` tells why it cannot be."""
        if self._state is not None or self._closed:
            return
        self._register(self, True)
        try:
            self._state = expected(await self._ask(self._opening), *self.ANSWERS)
        except BaseException:
            self._register(self, False)
            raise

    async def close(self) -> None:
        """Tell what was handled and read no more. A durable subscription keeps its place."""
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

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def take(self, most: int) -> list[T | Ended]:
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
        if self._untold >= self.TELL_ITEMS:
            self._tell_later()

    async def consume(self, items: int) -> None:
        """So many of those that were taken are handled; returns when that is durable."""
        self.handled(items)
        if self._untold and not self._closed:
            await self._tell()

    async def acknowledge(self) -> None:
        """All that was taken so far is handled; returns when that is durable."""
        await self.consume(self._taken)

    def deliver(self, items: Iterable[T | Ended]) -> None:
        """Take in what the node hands over. How much may wait here is bounded by the machine."""
        if self.ended is None:
            self._queue.extend(items)
            self._arrived.set()

    def _noted(self, item: T | Ended) -> T | Ended:
        self._taken += 1
        if isinstance(item, Ended):
            self.ended = item
        return item

    def _tell_later(self) -> None:
        # A reader that never waits gives the task no turn; one is enough to tell all that it read.
        if self._untold and not self._closed and not self._telling:
            self._telling = True
            self._spawn(self._tell_quietly(), f"acknowledge items of {self.number}")

    async def _tell_quietly(self) -> None:
        try:
            await self._tell()
        except LinnetError:
            return  # The node is stopping: the reader is told by the end of the subscription.

    async def _tell(self) -> None:
        untold, self._untold, self._telling = self._untold, 0, False
        if untold:
            expected(await self._ask(Consumed(self.number, untold)), Done)
