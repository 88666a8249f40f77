"""A rendezvous looks again if somebody closer is gone, or who keeps its filters.

Whoever is gone may come back without its memory, and so may all others at once: then nobody knows of this
node and what is asked for here, and nobody will tell it. So it looks by itself: soon, and then at least as
often as events are kept for those who were elsewhere, so that it is sent what it missed. Who is asked in a
lookup knows of it again.
"""

from __future__ import annotations

from linnet.content.config import ContentConfig
from linnet.content.directory import Locate
from linnet.content.effects import OWNER, ContentEffect
from linnet.content.elections import Elections
from linnet.content.table import FilterTable
from linnet.core.effects import SetTimer
from linnet.core.timers import Tick

LOOK = "look"


class Doubts:
    """The attributes of which this node may not be the only rendezvous, and how often it looked."""

    def __init__(self, config: ContentConfig, elections: Elections, table: FilterTable) -> None:
        self._config = config
        self._elections = elections
        self._table = table
        self._looks: dict[str, int] = {}
        self._until: dict[str, float] = {}

    def begin(self, attribute: str, now: float) -> list[ContentEffect]:
        """Somebody closer was there and is not found any more, or nobody is found at all."""
        return self._begin(attribute, now + self._config.refresh)

    def abandoned(self, attribute: str, now: float) -> list[ContentEffect]:
        """One who keeps the filters of this node as rendezvous is gone."""
        return self._begin(attribute, now + 2 * self._config.avoided)

    def _begin(self, attribute: str, until: float) -> list[ContentEffect]:
        is_new = attribute not in self._until
        self._until[attribute] = max(until, self._until.get(attribute, until))
        if not is_new:
            return []
        self._looks[attribute] = 0
        return [self._timer(attribute)]

    def fired(self, tick: Tick, now: float) -> list[ContentEffect]:
        """It is time to look again, unless another is the rendezvous now, or it makes no difference here."""
        attribute = tick.key.decode()
        if not self._is_open(attribute) or now >= self._until[attribute]:
            del self._until[attribute], self._looks[attribute]
            return []
        self._looks[attribute] += 1
        looks: list[Locate] = self._elections.look(attribute)
        return [*looks, self._timer(attribute)]

    def _is_open(self, attribute: str) -> bool:
        """Whether somebody waits here for what others may be told, or others for what is said here."""
        is_asked = attribute in self._table.attributes and attribute in self._elections.held
        return is_asked or self._elections.is_lost(attribute)

    def _timer(self, attribute: str) -> SetTimer[Tick]:
        most = self._config.lately or self._config.confirmed
        wait = min(most, self._config.resend * 2 ** min(16, self._looks[attribute]))
        return SetTimer(wait, Tick(OWNER, LOOK, attribute.encode()))
