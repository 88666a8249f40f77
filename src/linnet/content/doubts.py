"""A rendezvous looks again if somebody closer is gone, or who keeps its filters.

Whoever is gone may come back without its memory, and so may all others at once: then nobody knows of this
node and what is asked for here, and nobody will tell it. So it looks by itself: soon, and then at least as
often as events are kept for those who were elsewhere, so that it is sent what it missed. Who is asked in a
lookup knows of it again.
"""

from __future__ import annotations

from linnet.content.config import ContentConfig
from linnet.content.elections import Elections
from linnet.content.filter_table import FilterTable
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox


class LookDue(Timer, frozen=True, gc=False):
    """A rendezvous has waited long enough to look again for somebody closer to its attribute."""

    attribute: str


class Doubts:
    """The attributes of which this node may not be the only rendezvous, and how often it looked."""

    def __init__(self, config: ContentConfig, elections: Elections, table: FilterTable, out: Outbox) -> None:
        self._config = config
        self._out = out
        self._elections = elections
        self._table = table
        self._looks: dict[str, int] = {}
        self._until: dict[str, float] = {}

    def begin(self, attribute: str, now: float) -> None:
        """Look for a period, since somebody closer was there and is not found, or nobody is."""
        self._begin(attribute, now + self._config.refresh)

    def handle_keeper_loss(self, attribute: str, now: float) -> None:
        """Look for a while, since one is gone who keeps our filters as rendezvous."""
        self._begin(attribute, now + 2 * self._config.avoided)

    def _begin(self, attribute: str, until: float) -> None:
        is_new = attribute not in self._until
        self._until[attribute] = max(until, self._until.get(attribute, until))
        if not is_new:
            return
        self._looks[attribute] = 0
        self._set_timer(attribute)

    def look_again(self, timer: LookDue, now: float) -> None:
        """Look again, unless another is the rendezvous now, or it makes no difference here."""
        attribute = timer.attribute
        if not self._is_open(attribute) or now >= self._until[attribute]:
            del self._until[attribute], self._looks[attribute]
            return
        self._looks[attribute] += 1
        self._elections.look_up(attribute)
        self._set_timer(attribute)

    def _is_open(self, attribute: str) -> bool:
        """Whether somebody waits here for what others may be told, or others for what is said here."""
        is_asked = attribute in self._table.attributes and attribute in self._elections.held
        return is_asked or self._elections.is_lost(attribute)

    def _set_timer(self, attribute: str) -> None:
        most = self._config.lately or self._config.confirmed
        wait = min(most, self._config.resend * 2 ** min(16, self._looks[attribute]))
        self._out.set_timer(wait, LookDue(attribute))
