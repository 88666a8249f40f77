"""How much memory a job takes: Python here, Java below it, and the Python workers below that."""

from __future__ import annotations

import threading
from types import TracebackType

import psutil

_EVERY = 0.2


def memory_of_tree(root: psutil.Process) -> int:
    """Bytes that this process and everything below it have in memory; shared pages count for each."""
    total = 0
    for process in (root, *root.children(recursive=True)):
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:  # it ended since it was listed
            continue
    return total


class PeakMemory:
    """Watches while something runs, and keeps the most that was seen."""

    def __init__(self) -> None:
        self._root = psutil.Process()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="peak-memory", daemon=True)
        self.bytes = 0

    def __enter__(self) -> PeakMemory:
        self._look()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._done.wait(_EVERY):
            self._look()

    def _look(self) -> None:
        self.bytes = max(self.bytes, memory_of_tree(self._root))
