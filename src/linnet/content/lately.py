"""Events that went by lately, for those who were away meanwhile and come back.

A route that was elsewhere is sent what went down here. If the rendezvous is gone before that, those who
tracked its events have them: the next rendezvous is one of them, or is handed them by one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from linnet.content.branches import Way
from linnet.content.config import ContentConfig
from linnet.content.passing import Passing


class WentBy(NamedTuple):
    """An event, and when it went by."""

    at: float
    way: Way
    passing: Passing
    hops: int


class Lately:
    """What went down here, and what went down elsewhere and was tracked here."""

    def __init__(self, config: ContentConfig) -> None:
        self._for = config.lately
        self._here: deque[WentBy] = deque(maxlen=config.waiting)
        self._elsewhere: deque[WentBy] = deque(maxlen=config.waiting)

    def went_down(self, event: WentBy) -> None:
        """An event went down here."""
        self._here.append(event)

    def finished_elsewhere(self, event: WentBy) -> None:
        """All that could be done for an event that is tracked here was done."""
        self._elsewhere.append(event)

    def here(self, attribute: str, now: float) -> Iterator[WentBy]:
        """What went down here under an attribute."""
        return self._recent(self._here, attribute, now)

    def elsewhere(self, attribute: str, now: float) -> Iterator[WentBy]:
        """What went down elsewhere under an attribute."""
        return self._recent(self._elsewhere, attribute, now)

    def tidy(self, now: float) -> None:
        """Forget what is not so late any more."""
        for some in (self._here, self._elsewhere):
            while some and some[0].at + self._for <= now:
                some.popleft()

    def _recent(self, some: deque[WentBy], attribute: str, now: float) -> Iterator[WentBy]:
        return (each for each in list(some) if each.way[1] == attribute and each.at + self._for > now)
