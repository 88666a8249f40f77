"""The background tasks of a running node, which are cancelled when it stops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self

Spawn = Callable[[Coroutine[Any, Any, None], str], object]
"""Starts a task of this name, which the node waits for."""


class Background:
    """A task group whose tasks are cancelled at the end of the block instead of holding it open."""

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()
        self._tasks: dict[asyncio.Task[None], None] = {}

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in list(self._tasks):
            task.cancel()
        # The group is told of a cancellation only; other errors of the body are not its own.
        cancelled = isinstance(error, asyncio.CancelledError)
        await self._group.__aexit__(kind if cancelled else None, error if cancelled else None, trace)

    async def finish(self, limit: float) -> None:
        """Wait until all tasks have ended, at most `limit` seconds."""
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=limit)

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Start a task that is cancelled at the end of the block."""
        task = self._group.create_task(work, name=name)
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
        return task
