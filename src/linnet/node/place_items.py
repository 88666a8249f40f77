"""What a place hands over, item by item, as an application holds it.

The node machine is told of what was handled by items and by bytes: it hands over no more than a few pieces of
bodies ahead of their reader, however long a body is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, ClassVar, TypeAlias

from linnet.core.errors import Refused
from linnet.delivery.items import Ended
from linnet.identity.text import Sort, short
from linnet.node.background import Spawn
from linnet.node.batching import Ask
from linnet.node.reader import Reader
from linnet.places.commands import Watching, WatchPlace
from linnet.places.items import Body, PlaceItem

TELL_ITEMS = 64
"""Handled items after which the machine is told, if the application goes on without a pause."""
TELL_BYTES = 256 * 1024
"""The same in bytes of bodies."""

Handed: TypeAlias = PlaceItem | Ended


class PlaceItems(Reader[PlaceItem, Watching]):
    """One subscription of a place; made by `Place`. For one reader."""

    TELL_ITEMS: ClassVar[int] = TELL_ITEMS
    ANSWERS: ClassVar[tuple[type[Any], ...]] = (Watching,)

    def __init__(
        self, command: WatchPlace, ask: Ask, spawn: Spawn, register: Callable[[PlaceItems, bool], None]
    ) -> None:
        super().__init__(command.subscription, command, ask, spawn, register)
        self._place = command.place
        self._sizes: deque[int] = deque()
        """Bytes of each item that was taken and not handled."""
        self._untold_bytes = 0

    @property
    def since(self) -> int:
        """The first message that it is handed; 0 before it is open."""
        return 0 if self._state is None else self._state.since

    async def __aiter__(self) -> AsyncIterator[PlaceItem]:
        """All items. `Refused` if it is ended by anyone but us. The reader closes it."""
        while not isinstance(item := (await self.take(1))[0], Ended):
            yield item
            self.handled(1)
        if item.reason is not None:
            raise Refused(item.reason, f"nothing more is handed over of {short(Sort.TOPIC, self._place)}")

    def handled(self, items: int) -> None:
        """The application is done with so many of those it took."""
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
