"""Performing what is planned for a world whose nodes are killed: in time, and whoever fell comes back."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from msgspec import Struct
from tests.node.killed_world import KilledWorld, until

from linnet.cli.exits import Failure

CALLS = 16
"""Calls to nodes that may be under way at once."""

W = TypeVar("W", bound=KilledWorld)
A = TypeVar("A")


class CourseSize(Struct, frozen=True, kw_only=True):
    """How many of everything."""

    kills: int
    """At random."""
    seconds: float
    """How long all this takes, about."""
    quiet: float
    """Seconds at the end, at most, until everyone has everything."""


class Kill(Struct, frozen=True):
    """A node is killed, and started again after so many seconds."""

    who: str
    away: float


class KilledCourse(ABC, Generic[W, A]):
    """Performs a plan over a world that is set up."""

    def __init__(self, world: W, plan: Sequence[tuple[float, A]], quiet: float, calls: int = CALLS) -> None:
        self._world = world
        self._plan = plan
        self._quiet = quiet
        self._calls = ThreadPoolExecutor(calls)
        self._threads: list[threading.Thread] = []
        self.declined = self.unanswered = 0
        """Calls to which a node said no, and calls that a kill left without an answer."""
        self.failures: list[str] = []
        self.settled_after: float | None = None
        """Seconds until all was calm at the end."""

    @abstractmethod
    def _perform(self, act: A, number: int) -> None:
        """Do the next of the plan, without waiting for it."""

    @abstractmethod
    def is_settled(self) -> bool:
        """Whether everyone has everything."""

    def run(self) -> None:
        """Everything; then all are started, and have time until everyone has everything."""
        began = time.monotonic()
        try:
            for number, (when, act) in enumerate(self._plan):
                time.sleep(max(0.0, began + when - time.monotonic()))
                self._perform(act, number)
        finally:
            for thread in self._threads:
                thread.join()
            self._calls.shutdown()
        self._world.start_all()
        calm = time.monotonic()
        if until(self.is_settled, self._quiet):
            self.settled_after = time.monotonic() - calm

    def _kill(self, act: Kill, when_back: Callable[[], None] | None = None) -> None:
        self._world.kill(act.who)
        self._spawn(lambda: self._return(act, when_back))

    def _spawn(self, act: Callable[[], None]) -> None:
        """Do something that the end of the plan waits for."""
        thread = threading.Thread(target=act)
        self._threads.append(thread)
        thread.start()

    def _return(self, act: Kill, when_back: Callable[[], None] | None) -> None:
        time.sleep(act.away)
        killed = self._world.killed[act.who]
        try:
            self._world.start(act.who)
        except Failure as failure:
            if self._world.killed[act.who] == killed:
                self.failures.append(str(failure))
            return
        if when_back is not None:
            when_back()
