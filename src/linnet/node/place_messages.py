"""Messages of a place, put together from their pieces, as an application reads them.

::

    async for message in place.listen():
        print(message.method, message.text)

A body that is longer than was asked for is not held in memory: `Message.pieces` reads it from the store, and
`Message.save` writes it to a file, going on where an earlier try was interrupted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias

from linnet.core.errors import Refused
from linnet.core.ids import AuthorId, TopicId
from linnet.delivery.items import Ended
from linnet.node.part_files import PartFile
from linnet.node.place_items import PlaceItems
from linnet.places.channel.packet import Modifier
from linnet.places.items import Body, Changed, Knocked, Lost, PlaceItem, Said, TakenBack

BODY_BYTES = 1024 * 1024
"""Bytes of a body that is handed over whole, unless asked otherwise."""
LOST_KEPT = 1024
"""Ranges that `Listening.lost` holds; all are handed over by `Listening.items`."""

Reopen = Callable[[int, int], PlaceItems]
"""Items of one message of the store, from a byte of its body on."""
Progress = Callable[[int, int], None]
"""Called with the bytes that are done and the bytes of all."""


class Message:
    """What was said in a place."""

    def __init__(self, said: Said, size: int, body: bytes | None, reopen: Reopen) -> None:
        self.place: TopicId = said.place
        self.number = said.message
        """Its number in the place; of a request, its number among those of its device."""
        self.nym: AuthorId | None = said.nym
        """Whose request it is, at the host; None: it was said to all."""
        self.author: AuthorId = said.author
        """The person whose device signed it."""
        self.method = said.method
        self.modifiers: tuple[Modifier, ...] = said.modifiers
        self.historic = said.historic
        """Whether it was said before we began to listen."""
        self.size = size
        """Bytes of its body."""
        self.body = body
        """None: it is longer than was asked for; see `pieces` and `save`."""
        self._reopen = reopen

    def __repr__(self) -> str:
        return f"Message({self.number}, {self.method!r}, {self.size} bytes)"

    @property
    def text(self) -> str:
        """The body as text, wrong bytes replaced; empty if it is too long to be held."""
        return (self.body or b"").decode("utf-8", "replace")

    @property
    def variables(self) -> dict[str, bytes]:
        """What its modifiers say, those that stay and those that do not."""
        return {each.name: each.value for each in self.modifiers}

    async def pieces(self, offset: int = 0) -> AsyncIterator[bytes]:
        """The body piece by piece from the store, whatever its length; from a byte on."""
        if self.body is not None:
            if offset < self.size:
                yield self.body[offset:]
            return
        async with self._reopen(self.number, offset) as items:
            async for item in items:
                if isinstance(item, Lost):
                    raise Refused(item.reason, f"message {self.number} cannot be had whole any more")
                if isinstance(item, Body) and item.data:
                    yield item.data

    async def save(self, path: Path | str, progress: Progress | None = None) -> Path:
        """Write the body to a file. What an earlier try has written stays, and the rest is added to it."""
        file = PartFile(Path(path), self.size)
        with file:
            async for piece in self.pieces(file.done):
                await asyncio.to_thread(file.add, piece)
                if progress is not None:
                    progress(file.done, self.size)
        return file.target


class Listening:
    """Messages of one place, to be read by ``async for``; made by `Place.listen` and `Place.history`."""

    def __init__(self, items: PlaceItems, reopen: Reopen, largest: int) -> None:
        self._items = items
        self._reopen = reopen
        self._largest = largest
        self._open: dict[tuple[AuthorId | None, int], _Open] = {}
        self._groups: deque[int] = deque()
        """For each that was taken and not handled, the items of which it was made, and those behind it."""
        self._within_block = False
        self.lost: deque[Lost] = deque(maxlen=LOST_KEPT)
        """Messages that could not be had, the latest of them."""
        self.lost_messages = 0

    @property
    def number(self) -> int:
        """What this subscription is called at its node."""
        return self._items.number

    @property
    def resumed(self) -> bool:
        """Whether a durable one of this name was there before."""
        return self._items.resumed

    @property
    def unhandled(self) -> int:
        """What was taken and not handled yet."""
        return len(self._groups)

    async def open(self) -> None:
        """Begin, if that was not done yet; `Refused` tells why it cannot be."""
        await self._items.open()

    async def close(self) -> None:
        """Listen no more. A durable one keeps its place."""
        await self._items.close()

    async def __aenter__(self) -> Self:
        await self.open()
        self._within_block = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def __aiter__(self) -> AsyncIterator[Message]:
        """Whole messages, in the order in which they ended. `Refused` if it is ended by anyone but us."""
        try:
            while True:
                (heard,) = await self.take(1)
                if isinstance(heard, Message):
                    yield heard
                self.handled(1)
                if isinstance(heard, Ended):
                    if heard.reason is not None:
                        raise Refused(heard.reason, "nothing more is handed over of this place")
                    return
        finally:
            if not self._within_block:
                await self.close()

    async def take(self, most: int) -> list[Heard]:
        """What is heard next, at least one: messages, and what else there is to say."""
        heard: list[Heard] = []
        while not heard:
            for item in await self._items.take(most):
                told = self._take(item)
                if told is not None:
                    heard.append(told)
                    self._groups.append(1)
                elif self._groups:
                    self._groups[-1] += 1
                else:
                    self._items.handled(1)  # a piece: it is in the store, or held by us
        return heard

    def handled(self, count: int) -> None:
        """The application is done with so many of those it took."""
        for _ in range(min(count, len(self._groups))):
            self._items.handled(self._groups.popleft())

    async def consume(self, count: int) -> None:
        """The same; returns when it is durable."""
        self.handled(count)
        await self._items.consume(0)

    async def acknowledge(self) -> None:
        """All that was taken so far is handled; returns when that is durable."""
        await self.consume(len(self._groups))

    def _take(self, item: PlaceItem | Ended) -> Heard | None:
        match item:
            case Said():
                self._open[item.nym, item.message] = _Open(item)
                return None
            case Body(nym=nym, message=number):
                opened = self._open.get((nym, number))
                if opened is None:
                    return None  # it began before we listened
                # A request is nowhere else, so it is held whatever its length.
                opened.add(item.data, self._largest if nym is None else None)
                if not item.last:
                    return None
                del self._open[nym, number]
                return Message(opened.said, opened.size, opened.body, self._reopen)
            case Lost(first=first, last=last):
                self.lost.append(item)
                self.lost_messages += last - first + 1
                for key in [key for key in self._open if key[0] is None and first <= key[1] <= last]:
                    del self._open[key]
        return item


Heard: TypeAlias = Message | Knocked | Changed | Lost | TakenBack | Ended
"""What is heard in a place."""


class _Open:
    """A message that has not ended."""

    def __init__(self, said: Said) -> None:
        self.said = said
        self.size = 0
        self._held: bytearray | None = bytearray()

    def add(self, data: bytes, largest: int | None) -> None:
        self.size += len(data)
        if self._held is not None:
            self._held += data
            if largest is not None and self.size > largest:
                self._held = None

    @property
    def body(self) -> bytes | None:
        return None if self._held is None else bytes(self._held)
