"""Whose turn it is: what one member does for all is done by the first, and by the next if that one does not.

All who are there work out the same order for each task, so mostly one of them acts. Whoever knows of others
that they are here waits for those before it in the order; nobody waits for who is away.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from linnet.groups.ids import MemberId


class Turns:
    """Tasks of one room, and since when each is known to be due."""

    def __init__(self, step: float) -> None:
        self._step = step
        self._since: dict[bytes, float] = {}

    def due(
        self, tasks: Iterable[bytes], ours: MemberId, here: Iterable[MemberId], now: float
    ) -> dict[bytes, float]:
        """When each task is ours to do; tasks that are not named any more are forgotten."""
        here = tuple(here)
        self._since = {task: self._since.get(task, now) for task in tasks}
        return {task: since + self._step * rank(task, ours, here) for task, since in self._since.items()}

    def failed(self, task: bytes, now: float) -> None:
        """It could not be done: not before a step more."""
        if task in self._since:
            self._since[task] = now + self._step

    def clear(self) -> None:
        """Nothing is due."""
        self._since.clear()


def rank(task: bytes, ours: MemberId, here: Iterable[MemberId]) -> int:
    """How many of those who are here come before us in the order of a task."""
    place = _place(task, ours)
    return sum(_place(task, member) < place for member in here if member != ours)


def _place(task: bytes, member: MemberId) -> bytes:
    return hashlib.sha256(b"linnet/turn/1" + task + member).digest()
