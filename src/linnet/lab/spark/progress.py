"""How far Spark is, for people who wait: one bar for each stage of the lab, by the tasks of Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

from pyspark import StatusTracker
from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

_EVERY = 0.3


class StageBars:
    """Bars that follow the tasks of whatever Spark runs, under the name of the stage that asked for it."""

    def __init__(self, spark: SparkSession, console: Console) -> None:
        columns = (
            TextColumn("{task.description:24}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        self._bars = Progress(*columns, console=console, transient=False)
        self._tracker: StatusTracker = spark.sparkContext.statusTracker()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="stage-bars", daemon=True)
        self._bar: TaskID | None = None
        self._seen: dict[int, tuple[int, int]] = {}

    def begin(self, name: str) -> None:
        """A stage of the lab begins; the one before is over."""
        self._finish()
        self._seen = {}
        self._bar = self._bars.add_task(name, total=None)

    def start(self) -> None:
        """Draw."""
        self._bars.start()
        self._thread.start()

    def stop(self) -> None:
        """Draw no more."""
        self._done.set()
        self._thread.join()
        self._finish()
        self._bars.stop()

    def _finish(self) -> None:
        if self._bar is not None:
            done = sum(done for done, _ in self._seen.values())
            self._bars.update(self._bar, completed=done or 1, total=done or 1)

    def _watch(self) -> None:
        while not self._done.wait(_EVERY):
            for stage in self._tracker.getActiveStageIds():
                info = self._tracker.getStageInfo(stage)
                if info is not None:
                    self._seen[stage] = (info.numCompletedTasks, info.numTasks)
            if self._bar is not None and self._seen:
                done, total = map(sum, zip(*self._seen.values(), strict=True))
                self._bars.update(self._bar, completed=done, total=total)


@contextmanager
def stage_bars(spark: SparkSession, console: Console | None) -> Generator[Callable[[str], None]]:
    """Tell the returned function which stage begins; without a console nothing is drawn."""
    if console is None:
        yield lambda name: None
        return
    bars = StageBars(spark, console)
    bars.start()
    try:
        yield bars.begin
    finally:
        bars.stop()
