"""The nodes of a place to measure: machines behind the library's driver, given commands as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from linnet.core.effects import Deliver
from linnet.core.ids import TopicId
from linnet.delivery.commands import Consumed
from linnet.node.config import NodeConfig
from linnet.node.library import Node
from linnet.peer.interface import AnyCommand, Handed
from linnet.places.commands import Watching, WatchPlace
from linnet.places.items import Body

METHOD = "_message"
WATCHER = 1_000_000
"""The number of the one watcher: beyond those that the library gives."""
R = TypeVar("R")


class PlaceNode(Node):
    """A node that takes part in one place."""

    def __init__(self, config: NodeConfig | None = None) -> None:
        super().__init__(config=config or NodeConfig())
        self._heard: Callable[[int], None] = lambda size: None

    async def get(self, command: AnyCommand, kind: type[R]) -> R:
        """Give a command that has to be answered in this way."""
        result = await self.ask(command)
        if not isinstance(result, kind):
            raise TypeError(f"{type(command).__name__}: {result!r}")
        return result

    async def watch(self, place: TopicId, heard: Callable[[int], None]) -> None:
        """Count the bytes of bodies as they come."""
        self._heard = heard
        await self.get(WatchPlace(WATCHER, place, objects=""), Watching)

    def _delivered(self, effect: Deliver[Handed]) -> None:
        if effect.subscription != WATCHER:
            super()._delivered(effect)
            return
        self._heard(sum(len(item.data) for item in effect.items if isinstance(item, Body)))
        self._background.spawn(self._consumed(len(effect.items)), "acknowledge")

    async def _consumed(self, items: int) -> None:
        await self._driver.ask(Consumed(WATCHER, items))
