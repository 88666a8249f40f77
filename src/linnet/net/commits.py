"""Durable before visible: promises wait here until the store has kept what they promise.

One commit for all inputs of a loop turn. While one is under way the machines go on; what they
write meanwhile is the next group (docs/adr, group commit).
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable

from linnet.core.limits import MIB
from linnet.peer.interface import Promise
from linnet.store.base import CommittingStore

BACKLOG_BYTES = 64 * MIB
"""Bytes that the store may be behind; past this nothing more is read, whatever the number of inputs."""


class Commits:
    """The promises of one driver, in the order in which they were made."""

    def __init__(
        self,
        store: CommittingStore,
        perform: Callable[[Promise], None],
        landed: Callable[[], None],
        limit: int,
    ) -> None:
        self._store = store
        self._perform = perform
        self._has_landed = landed
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._held: list[Promise] = []
        self._inputs = 0
        self._uncommitted = 0
        self._flying: deque[tuple[int, list[Promise]]] = deque()
        self._settled = asyncio.Event()
        self._settled.set()

    @property
    def is_behind(self) -> bool:
        """Whether the store has so much to do that nothing more should be handled."""
        return self._uncommitted >= self._limit or self._store.backlog > BACKLOG_BYTES

    def handled(self) -> None:
        """An input was handled: there may be something to commit."""
        self._inputs += 1
        self._uncommitted += 1

    def hold(self, promises: Iterable[Promise]) -> None:
        """Perform these after the next commit."""
        self._held.extend(promises)

    def commit(self) -> None:
        """Commit what was handled since the last time. Raises `StoreError` if writing has failed."""
        if not self._inputs:
            return
        batch = self._inputs, self._held
        self._inputs, self._held = 0, []
        self._flying.append(batch)
        self._settled.clear()
        self._store.commit(self._done)

    def abandon(self) -> None:
        """Forget everything since the last commit, in the store too."""
        self._held = []
        self._inputs = 0
        self._store.rollback()

    async def settled(self, limit: float) -> bool:
        """Wait until no commit is under way; whether that came within so many seconds."""
        try:
            async with asyncio.timeout(limit):
                await self._settled.wait()
        except TimeoutError:
            return False
        return True

    def give_up(self) -> None:
        """No commit will land any more: the store has failed."""
        self._flying.clear()
        self._settled.set()

    def _done(self) -> None:
        if threading.get_ident() == self._thread:
            self._land()
        else:
            self._loop.call_soon_threadsafe(self._land)

    def _land(self) -> None:
        if not self._flying:
            return
        inputs, promises = self._flying.popleft()
        self._uncommitted -= inputs
        if not self._flying:
            self._settled.set()
        for promise in promises:
            self._perform(promise)
        self._has_landed()
