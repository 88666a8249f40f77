"""Records of what was refused, all of it counted, however much comes.

Anyone on a local network can send anything at any rate. So the first refusal for a reason is written
at once, and those that follow within the same window as one record that says how many they were.
"""

from __future__ import annotations

from linnet.core.reasons import Reason
from linnet.trace.records import Kind, Record


class Refusals:
    """What was refused since the last look."""

    def __init__(self) -> None:
        self._more: dict[Reason, int] = {}

    def refused(self, reason: Reason, note: str) -> list[Record]:
        """One more; a record if it is the first for this reason in this window."""
        if reason in self._more:
            self._more[reason] += 1
            return []
        self._more[reason] = 0
        return [Record(Kind.REJECTED, reason=reason, note=note[:200])]

    @property
    def is_open(self) -> bool:
        """Whether a window has to be ended."""
        return bool(self._more)

    def end(self) -> list[Record]:
        """End the window: records of all that was only counted in it."""
        more, self._more = self._more, {}
        note = "more announcements, refused for the same reason"
        return [
            Record(Kind.REJECTED, events=count, reason=reason, note=note)
            for reason, count in more.items()
            if count
        ]
