"""Events that went by lately, for those who were away meanwhile and come back.

A route that was elsewhere is sent what went down here. If the rendezvous is gone before that, those who
tracked its events have them: the next rendezvous is one of them, or is handed them by one. What it is handed
after a route came back goes to that route as well.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from linnet.content.branches import Way
from linnet.content.config import ContentConfig
from linnet.content.passing import Passing
from linnet.core.ids import PeerId


class WentBy(NamedTuple):
    """An event, and when it went by."""

    at: float
    way: Way
    passing: Passing
    hops: int
    leader: PeerId | None = None
    """Who led it, of what was tracked here."""


class Lately:
    """What went down here, what went down elsewhere and was tracked here, and who came back."""

    def __init__(self, config: ContentConfig) -> None:
        self._for = config.lately
        self._most = config.waiting
        self._here: deque[WentBy] = deque(maxlen=config.waiting)
        self._elsewhere: dict[Way, WentBy] = {}
        self._back: dict[tuple[str, PeerId], float] = {}
        """Routes that were elsewhere, by attribute, and when they said so: the longest ago first."""

    def went_down(self, event: WentBy) -> None:
        """An event went down here."""
        self._here.append(event)

    def finished_elsewhere(self, event: WentBy) -> None:
        """All that could be done for an event that is tracked here was done."""
        self._elsewhere.pop(event.way, None)
        self._elsewhere[event.way] = event
        if len(self._elsewhere) > self._most:
            del self._elsewhere[next(iter(self._elsewhere))]

    def came_back(self, attribute: str, route: PeerId, now: float) -> None:
        """A route was elsewhere until now."""
        self._back.pop((attribute, route), None)
        self._back[attribute, route] = now

    def is_back(self, attribute: str, route: PeerId, now: float) -> bool:
        """Whether a route was elsewhere until lately."""
        at = self._back.get((attribute, route))
        return at is not None and at + self._for > now

    def here(self, attribute: str, now: float) -> list[WentBy]:
        """What went down here under an attribute."""
        return self._recent(self._here, attribute, now)

    def elsewhere(self, attribute: str, now: float) -> list[WentBy]:
        """What went down elsewhere under an attribute."""
        return self._recent(self._elsewhere.values(), attribute, now)

    def has(self, way: Way) -> bool:
        """Whether an event was tracked here."""
        return way in self._elsewhere

    def led_by(self, leader: PeerId) -> list[str]:
        """The attributes of what was tracked here for one node."""
        return sorted({each.way[1] for each in self._elsewhere.values() if each.leader == leader})

    def tidy(self, now: float) -> None:
        """Forget what is not so late any more."""
        while self._here and self._here[0].at + self._for <= now:
            self._here.popleft()
        for way, event in list(self._elsewhere.items()):
            if event.at + self._for <= now:
                del self._elsewhere[way]
        for who, at in list(self._back.items()):
            if at + self._for <= now:
                del self._back[who]

    def _recent(self, some: Iterable[WentBy], attribute: str, now: float) -> list[WentBy]:
        return [each for each in some if each.way[1] == attribute and each.at + self._for > now]
