"""Where the keys of a sealed stream meet its subscriptions: what could not be read is told once it can be."""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.delivery.context import Context
from linnet.delivery.gap_repair import GapRepair
from linnet.event.event import Verified
from linnet.machine.outbox import Outbox
from linnet.streams.sealed.announcement_search import Search
from linnet.streams.sealed.following import Following
from linnet.streams.subscribe import Readers


class Opening:
    """Takes in what announces keys, and looks for what is missing of it."""

    def __init__(
        self,
        topic: TopicId,
        context: Context,
        gaps: GapRepair,
        following: Following,
        readers: Readers,
        out: Outbox,
    ) -> None:
        self._following = following
        self._search = Search(topic, context, gaps, following, out)
        self._readers = readers

    def read(self, units: Iterable[Verified], now: float) -> None:
        """Take in the announcements of units, before anything of them is handed over."""
        is_news = False
        for verified in units:
            is_news = self._following.read(verified, now) or is_news
        if is_news:
            self._readers.hand_unlocked()

    def look_for_keys(self, now: float) -> None:
        """Look for the keys of what could not be read, after something was handed over."""
        self._search.look(now)

    def set_storage(self, nodes: dict[PeerId, Contact]) -> None:
        """These nodes keep the stream."""
        self._search.set_storage(nodes)

    def ask_again(self, now: float) -> None:
        """Whoever was asked for a key took too long."""
        self._search.ask_again(now)

    def stop(self) -> None:
        """Nobody wants to read any more."""
        self._search.stop()
