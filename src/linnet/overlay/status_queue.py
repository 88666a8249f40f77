"""The naive protocol's outgoing queue: one status, delayed, and delayed again by each newer one.

Juslenius 2021, section 4.3: a queue of size one with a timeout of 200 ms, which starts anew with
each status that is put in. There is no longest wait.
"""

from __future__ import annotations

from linnet.core.ids import PeerId
from linnet.machine.outbox import Outbox
from linnet.overlay.messages import StatusAll
from linnet.overlay.timers import StatusDue


class StatusQueue:
    """At most one status for each tracker, in parts if it has too many topics; the newest wins."""

    def __init__(self, delay: float, out: Outbox) -> None:
        self._delay = delay
        self._out = out
        self._waiting: dict[PeerId, tuple[StatusAll, ...]] = {}

    def put(self, tracker: PeerId, statuses: tuple[StatusAll, ...]) -> None:
        """Replace what waits, and start the wait anew."""
        self._waiting[tracker] = statuses
        self._out.set_timer(self._delay, StatusDue(tracker))

    def send(self, tracker: PeerId) -> None:
        """The wait is over."""
        for status in self._waiting.pop(tracker, ()):
            self._out.send(tracker, status)

    def drop(self, tracker: PeerId) -> None:
        """The link to the tracker is gone; the next one begins with a join, which tells all."""
        if self._waiting.pop(tracker, None) is not None:
            self._out.cancel_timer(StatusDue(tracker))
