"""How many control events that fail only against the current state are taken of one author a day.

Control DAGs have to converge, so such events are kept and passed on. But whoever is banned can make valid
events on old branches for ever; a few a day are more than honest clocks and partitions need.
"""

from __future__ import annotations

from linnet.core.ids import AuthorId, TopicId
from linnet.core.stores import Cells

_SPACE = "relay.soft"
_DAY = 86_400


class Allowance:
    """The counts of one room; they outlive a restart."""

    def __init__(self, room: TopicId, cells: Cells, most: int) -> None:
        self._room = room
        self._cells = cells
        self._most = most

    def spend(self, author: AuthorId, now: float) -> bool:
        """Count one more; whether it is allowed."""
        today = int(now // _DAY)
        day, count = self._read(author)
        count = count if day == today else 0
        if count >= self._most:
            return False
        value = today.to_bytes(4, "big") + (count + 1).to_bytes(4, "big")
        self._cells.put(_SPACE, self._room + author, value)
        return True

    def forget(self) -> None:
        """The room is not served any more."""
        for key, _ in list(self._cells.scan(_SPACE)):
            if key.startswith(self._room):
                self._cells.delete(_SPACE, key)

    def _read(self, author: AuthorId) -> tuple[int, int]:
        kept = self._cells.get(_SPACE, self._room + author)
        return (0, 0) if kept is None else (int.from_bytes(kept[:4], "big"), int.from_bytes(kept[4:], "big"))
