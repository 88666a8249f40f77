"""What a subscription to content hands over, as an application holds it.

::

    async for match in node.content.subscribe("stock/apple/price[10,20]"):
        print(match.attributes, match.body)

    async with node.content.subscribe("quake/strength[5,)", name="alarm") as quakes:
        async for match in quakes:
            ...
            await quakes.acknowledge()

With a name a subscription goes on while nobody reads it, and over restarts. Each match has a number: after a
crash what was not acknowledged comes again with the number that it had.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, ClassVar, Self

from linnet.content.commands import ContentItem, InGroups, Match, Overflow, Standing, SubscribeContent
from linnet.core.errors import Refused
from linnet.delivery.items import Ended
from linnet.node.background import Spawn
from linnet.node.batching import Ask
from linnet.node.reader import Reader

OVERFLOWS_KEPT = 1024


class ContentItems(Reader[ContentItem | InGroups, Standing]):
    """One subscription to content; made by `NodeContent.subscribe`. For one reader."""

    TELL_ITEMS: ClassVar[int] = 64
    ANSWERS: ClassVar[tuple[type[Any], ...]] = (Standing,)

    def __init__(
        self,
        command: SubscribeContent,
        ask: Ask,
        spawn: Spawn,
        register: Callable[[ContentItems, bool], None],
    ) -> None:
        super().__init__(command.subscription, command, ask, spawn, register)
        self._within_block = False
        self.overflows: deque[Overflow] = deque(maxlen=OVERFLOWS_KEPT)
        """What was not taken, since too much waited to be read; the latest of it."""
        self.in_groups: InGroups | None = None
        """In how many groups it is, by `fast` or `auto`, once they were looked for; see docs/content.md."""

    @property
    def predicate(self) -> str:
        """What it accepts, in its canonical text; empty before it is open."""
        return "" if self._state is None else self._state.predicate

    @property
    def attribute(self) -> str:
        """The attribute to whose rendezvous it goes; empty before it is open."""
        return "" if self._state is None else self._state.attribute

    async def __aenter__(self) -> Self:
        await self.open()
        self._within_block = True
        return self

    async def __aiter__(self) -> AsyncIterator[Match]:
        """The matches. `Refused` if it is ended by anyone but us."""
        try:
            while True:
                item = (await self.take(1))[0]
                if isinstance(item, Match):
                    yield item
                self.handled(1)
                if isinstance(item, Ended):
                    if item.reason is not None:
                        raise Refused(item.reason, f"the subscription to {self.predicate} ended")
                    return
        finally:
            if not self._within_block:
                await self.close()

    def deliver(self, items: Iterable[ContentItem | InGroups | Ended]) -> None:
        """See `Reader.deliver`; how it stands with groups is known at once, whoever reads."""
        handed = tuple(items)
        for item in handed:
            if isinstance(item, InGroups):
                self.in_groups = item
        super().deliver(handed)

    def _noted(self, item: ContentItem | InGroups | Ended) -> ContentItem | InGroups | Ended:
        if isinstance(item, InGroups):
            return item
        if isinstance(item, Overflow):
            self.overflows.append(item)
        return super()._noted(item)
