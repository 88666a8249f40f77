"""Who was away is sent what went down meanwhile, here or where it was tracked; each for its own sake."""

from __future__ import annotations

from linnet.content.filter_table import FilterTable
from linnet.content.lately import WentBy
from linnet.content.notices import Notices
from linnet.content.predicate import Predicate
from linnet.core.ids import PeerId


class Replays:
    """For routes that come back, and for events that come after them."""

    def __init__(self, notices: Notices, table: FilterTable) -> None:
        self._notices = notices
        self._lately = notices.lately
        self._table = table

    def replay(self, route: PeerId, attribute: str, predicate: Predicate, now: float) -> None:
        """Send a route that was elsewhere what it wants of what there was."""
        self._lately.came_back(attribute, route, now)
        for event in self._lately.elsewhere(attribute, now):
            if predicate.covers(event.passing.attributes):
                self._notices.adopt(event)
        for event in self._lately.here(attribute, now):
            if predicate.covers(event.passing.attributes):
                self._notices.resend(route, event, now)

    def replay_tracked(self, event: WentBy, now: float) -> None:
        """Send a finished event that was tracked here to those who came back before we had it."""
        self._lately.finished_elsewhere(event)
        attribute = event.way[1]
        wanted = self._table.interested(attribute, event.passing.attributes)
        back = [route for route in wanted if self._lately.is_back(attribute, route, now)]
        if not back or self._notices.is_known(event.way):
            return
        self._notices.adopt(event)
        for route in back:
            self._notices.resend(route, event, now)
