"""The messages of a place: pieces as they arrive (`PlaceItems`), or whole messages put together from them.

::

    async for message in place.listen():
        print(message.method, message.text)

A body that is longer than requested is not held in memory: `Message.pieces` reads it from the store, and
`Message.save` writes it to a file, and resumes an interrupted try. The node machine is told which items and
bytes were handled: it hands over no more than a few pieces ahead of their reader.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import ClassVar, Self, TypeAlias

from linnet.api.places import MessageView, PlaceItemView, message_view, place_item_view
from linnet.core.errors import Refused
from linnet.core.ids import AuthorId, TopicId
from linnet.delivery.items import Ended
from linnet.identity.text import Sort, short
from linnet.machine.commands import Ask
from linnet.node.background import Spawn
from linnet.node.file_transfer import PartFile
from linnet.node.subscription import Reader
from linnet.places.channel.packet import Modifier
from linnet.places.commands import Watching, WatchPlace
from linnet.places.items import Body, Changed, Knocked, Lost, PlaceItem, Said, TakenBack

TELL_ITEMS = 64
"""Handled items after which the machine is told, if the application goes on without a pause."""
TELL_BYTES = 256 * 1024
"""Handled bytes of bodies after which the machine is told."""

Handed: TypeAlias = PlaceItem | Ended


class PlaceItems(Reader[PlaceItem, Watching]):
    """One subscription of a place; made by `Place`. For one reader only."""

    TELL_ITEMS: ClassVar[int] = TELL_ITEMS

    def __init__(
        self, command: WatchPlace, ask: Ask, spawn: Spawn, register: Callable[[PlaceItems, bool], None]
    ) -> None:
        super().__init__(command.subscription, command, ask, spawn, register)
        self._place = command.place
        self._sizes: deque[int] = deque()
        """The size of each item that was taken and not handled."""
        self._untold_bytes = 0

    async def __aiter__(self) -> AsyncIterator[PlaceItem]:
        """Yield all items. Raises `Refused` if it was not ended by us. The reader must close it."""
        while not isinstance(item := (await self.take(1))[0], Ended):
            yield item
            self.handled(1)
        if item.reason is not None:
            raise Refused(item.reason, f"nothing more is handed over of {short(Sort.TOPIC, self._place)}")

    def handled(self, items: int) -> None:
        """Note that the application has handled this many of the items it took."""
        for _ in range(min(items, len(self._sizes))):
            self._untold_bytes += self._sizes.popleft()
        super().handled(items)
        if self._untold_bytes >= TELL_BYTES:
            self._tell_later()

    def _noted(self, item: Handed) -> Handed:
        self._sizes.append(len(item.data) if isinstance(item, Body) else 0)
        return super()._noted(item)

    async def _tell(self) -> None:
        self._untold_bytes = 0
        await super()._tell()


LOST_KEPT = 1024
"""The most ranges in `Listening.lost`; `Listening.items` hands over all of them."""

Reopen = Callable[[int, int], PlaceItems]
"""Returns the items of one stored message, from a byte of its body on."""
Progress = Callable[[int, int], None]
"""Called with the bytes done so far and the total."""


class Message:
    """A message of a place."""

    def __init__(self, said: Said, size: int, body: bytes | None, reopen: Reopen) -> None:
        self.place: TopicId = said.place
        self.number = said.message
        """Its number in the place; for a request, its number among those of its device."""
        self.nym: AuthorId | None = said.nym
        """The sender of a request, at the host; None: it was said to all."""
        self.author: AuthorId = said.author
        """The person whose device signed it."""
        self.method = said.method
        self.modifiers: tuple[Modifier, ...] = said.modifiers
        self.historic = said.historic
        """Whether it was said before we began to listen."""
        self.size = size
        """The size of its body in bytes."""
        self.body = body
        """The body; None if it is longer than requested: see `pieces` and `save`."""
        self._reopen = reopen

    def __repr__(self) -> str:
        return f"Message({self.number}, {self.method!r}, {self.size} bytes)"

    @property
    def view(self) -> MessageView:
        """The message as a line of the control API."""
        said = Said(
            self.place, self.number, self.nym, self.author, self.method, self.modifiers, self.historic
        )
        return message_view(said, self.size, self.body)

    @property
    def text(self) -> str:
        """The body as text, invalid bytes replaced; empty if it is too long to be held."""
        return (self.body or b"").decode("utf-8", "replace")

    @property
    def variables(self) -> dict[str, bytes]:
        """The values of its modifiers, both lasting and transient ones."""
        return {each.name: each.value for each in self.modifiers}

    async def pieces(self, offset: int = 0) -> AsyncIterator[bytes]:
        """Yield the body piece by piece from the store, whatever its length, from a byte on."""
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
        """Write the body to a file, continuing after what an earlier try has written."""
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
        """For each taken and unhandled message, the number of its items and of those after it."""
        self._within_block = False
        self.lost: deque[Lost] = deque(maxlen=LOST_KEPT)
        """The latest messages that nobody could provide."""
        self.lost_messages = 0

    @property
    def number(self) -> int:
        """The number of this subscription at its node."""
        return self._items.number

    @property
    def resumed(self) -> bool:
        """Whether a durable subscription of this name existed before."""
        return self._items.resumed

    @property
    def unhandled(self) -> int:
        """The number of messages that were taken and not handled yet."""
        return len(self._groups)

    async def open(self) -> None:
        """Open the subscription if it is not open yet; raises `Refused` if it cannot be opened."""
        await self._items.open()

    async def close(self) -> None:
        """Stop listening. A durable subscription keeps its place."""
        await self._items.close()

    async def __aenter__(self) -> Self:
        await self.open()
        self._within_block = True
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def __aiter__(self) -> AsyncIterator[Message]:
        """Yield whole messages in the order in which they ended. Raises `Refused` if not ended by us."""
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
        """Return what is heard next, at least one: messages and other notices."""
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
        """Note that the application has handled this many of those it took."""
        for _ in range(min(count, len(self._groups))):
            self._items.handled(self._groups.popleft())

    async def consume(self, count: int) -> None:
        """Report this many as handled; returns when that is durable."""
        self.handled(count)
        await self._items.consume(0)

    async def acknowledge(self) -> None:
        """Report all taken so far as handled; returns when that is durable."""
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
                # A request is stored nowhere else, so it is held whatever its length.
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
"""What a listener hears in a place."""


def heard_view(heard: Heard) -> PlaceItemView:
    """Return what is heard in a place as a line of the control API."""
    return heard.view if isinstance(heard, Message) else place_item_view(heard)


class _Open:
    """A message that is not complete."""

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
