"""What a place hands over, item by item, as an application holds it.

An item counts as handled when the next one is asked for. The node machine is told so now and then, by items
and by bytes: it hands over no more than a few pieces of bodies ahead of their reader, however long a body is.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from types import TracebackType
from typing import Self, TypeAlias

from linnet.core.errors import LinnetError, Refused
from linnet.delivery.commands import Consumed, Done, Unsubscribe
from linnet.delivery.items import Ended
from linnet.identity.text import Sort, short
from linnet.node.background import Spawn
from linnet.node.batching import Ask
from linnet.node.room import expected
from linnet.places.commands import Watching, WatchPlace
from linnet.places.items import Body, PlaceItem

TELL_ITEMS = 64
"""Handled items after which the machine is told, if the application goes on without a pause."""
TELL_BYTES = 256 * 1024
"""The same in bytes of bodies."""

Handed: TypeAlias = PlaceItem | Ended


class PlaceItems:
    """One subscription of a place; made by `Place`. For one reader."""

    def __init__(
        self, command: WatchPlace, ask: Ask, spawn: Spawn, register: Callable[[PlaceItems, bool], None]
    ) -> None:
        self._command = command
        self._ask = ask
        self._spawn = spawn
        self._register = register
        self._queue: deque[Handed] = deque()
        self._arrived = asyncio.Event()
        self._state: Watching | None = None
        self._closed = False
        self._taken: deque[int] = deque()
        """Bytes of each item that was taken and not handled."""
        self._untold = self._untold_bytes = 0
        self.ended: Ended | None = None
        """Set when nothing more comes."""

    @property
    def number(self) -> int:
        """What this subscription is called at its node."""
        return self._command.subscription

    @property
    def resumed(self) -> bool:
        """Whether a durable one of this name was there before."""
        return self._state is not None and self._state.resumed

    @property
    def since(self) -> int:
        """The first message that it is handed; 0 before it is open."""
        return 0 if self._state is None else self._state.since

    @property
    def unhandled(self) -> int:
        """Items that were taken and not handled yet."""
        return len(self._taken)

    async def open(self) -> None:
        """Begin, if that was not done yet; `Refused` tells why it cannot be."""
        if self._state is not None or self._closed:
            return
        self._register(self, True)
        try:
            self._state = expected(await self._ask(self._command), Watching)
        except BaseException:
            self._register(self, False)
            raise

    async def close(self) -> None:
        """Tell what was handled and watch no more. A durable one keeps its place."""
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

    async def __aiter__(self) -> AsyncIterator[PlaceItem]:
        """All items. `Refused` if it is ended by anyone but us. The reader closes it."""
        while not isinstance(item := (await self.take(1))[0], Ended):
            yield item
            self.handled(1)
        if item.reason is not None:
            what = short(Sort.TOPIC, self._command.place)
            raise Refused(item.reason, f"nothing more is handed over of {what}")

    async def take(self, most: int) -> list[Handed]:
        """The next items, at least one; they count as handled only by `handled`."""
        await self.open()
        if not self._queue:
            if self.ended is not None:
                return [self.ended]
            self._tell_later()
            self._arrived.clear()
            await self._arrived.wait()
        return [self._noted(self._queue.popleft()) for _ in range(min(most, len(self._queue)))]

    def handled(self, items: int) -> None:
        """The application is done with so many of those it took."""
        for _ in range(min(items, len(self._taken))):
            self._untold += 1
            self._untold_bytes += self._taken.popleft()
        if self._untold >= TELL_ITEMS or self._untold_bytes >= TELL_BYTES:
            self._tell_later()

    async def consume(self, items: int) -> None:
        """So many of those that were taken are handled; returns when that is durable."""
        self.handled(items)
        if self._untold and not self._closed:
            await self._tell()

    async def acknowledge(self) -> None:
        """All that was taken so far is handled; returns when that is durable."""
        await self.consume(len(self._taken))

    def deliver(self, items: Iterable[Handed]) -> None:
        """Take in what the node hands over. How much may wait here is bounded by the machine."""
        if self.ended is None:
            self._queue.extend(items)
            self._arrived.set()

    def _noted(self, item: Handed) -> Handed:
        self._taken.append(len(item.data) if isinstance(item, Body) else 0)
        if isinstance(item, Ended):
            self.ended = item
        return item

    def _tell_later(self) -> None:
        if self._untold and not self._closed:
            items, self._untold, self._untold_bytes = self._untold, 0, 0
            self._spawn(self._tell_quietly(items), f"acknowledge items of {self.number}")

    async def _tell_quietly(self, items: int) -> None:
        try:
            await self._ask(Consumed(self.number, items))
        except LinnetError:
            return  # The node is stopping: the reader is told by the end of the subscription.

    async def _tell(self) -> None:
        items, self._untold, self._untold_bytes = self._untold, 0, 0
        expected(await self._ask(Consumed(self.number, items)), Done)
