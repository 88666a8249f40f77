"""Where the keys of a sealed stream meet its subscriptions: what could not be read is told once it can be."""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.delivery.context import Context
from linnet.delivery.gaps import Gaps
from linnet.event.event import Verified
from linnet.streams.readers import Readers, ReadersEffect
from linnet.streams.sealed.following import Following
from linnet.streams.sealed.search import Search, SearchEffect
from linnet.trace.records import Record

OpeningEffect = ReadersEffect | SearchEffect | Record


class Opening:
    """Takes in what announces keys, and looks for what is missing of it."""

    def __init__(
        self, topic: TopicId, context: Context, gaps: Gaps, following: Following, readers: Readers
    ) -> None:
        self._following = following
        self._search = Search(topic, context, gaps, following)
        self._readers = readers

    def read(self, units: Iterable[Verified], now: float) -> list[OpeningEffect]:
        """Take in the announcements of units, before anything of them is handed over."""
        effects: list[OpeningEffect] = []
        is_news = False
        for verified in units:
            news, records = self._following.read(verified, now)
            is_news = is_news or news
            effects += records
        return [*effects, *self._readers.unlocked()] if is_news else effects

    def look(self, now: float) -> list[OpeningEffect]:
        """Look for the keys of what could not be read, after something was handed over."""
        return [*self._search.look(now)]

    def storage(self, nodes: dict[PeerId, Contact]) -> None:
        """These nodes keep the stream."""
        self._search.storage(nodes)

    def fired(self, now: float) -> list[OpeningEffect]:
        """Whoever was asked for a key took too long."""
        return [*self._search.fired(now)]

    def stop(self) -> list[OpeningEffect]:
        """Nobody wants to read any more."""
        return [*self._search.stop()]
