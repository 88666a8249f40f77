"""The naive protocol's outgoing queue: one status, delayed, and delayed again by each newer one.

Juslenius 2021, section 4.3: a queue of size one with a timeout of 200 ms, which starts anew with
each status that is put in. There is no longest wait.
"""

from __future__ import annotations

from typing import ClassVar

from linnet.core.effects import CancelTimer, Send, SetTimer
from linnet.core.ids import PeerId
from linnet.core.timers import Tick
from linnet.overlay.effects import MemberEffect
from linnet.overlay.follower import OWNER
from linnet.overlay.messages import StatusAll


class StatusQueue:
    """At most one status for each tracker, in parts if it has too many topics; the newest wins."""

    WHAT: ClassVar[str] = "status"
    """What its timers are for."""

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._waiting: dict[PeerId, tuple[StatusAll, ...]] = {}

    def put(self, tracker: PeerId, statuses: tuple[StatusAll, ...]) -> list[MemberEffect]:
        """Replace what waits, and start the wait anew."""
        self._waiting[tracker] = statuses
        return [SetTimer(self._delay, Tick(OWNER, self.WHAT, tracker))]

    def fire(self, tracker: PeerId) -> list[MemberEffect]:
        """The wait is over."""
        return [Send(tracker, status) for status in self._waiting.pop(tracker, ())]

    def drop(self, tracker: PeerId) -> list[MemberEffect]:
        """The link to the tracker is gone; the next one begins with a join, which tells all."""
        if self._waiting.pop(tracker, None) is None:
            return []
        return [CancelTimer(Tick(OWNER, self.WHAT, tracker))]
