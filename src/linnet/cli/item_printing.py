"""Printing what readers of places and of content are handed: what they asked for, and all else beside it."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from typing import Generic, TypeVar

import msgspec
import typer

from linnet.cli.acknowledging import Acknowledging, Consumer
from linnet.cli.exits import ExitCode, Failure
from linnet.cli.output import counted, json_text, say, say_json, warn
from linnet.cli.printing import Expired, time_limit
from linnet.core.reasons import Reason
from linnet.node.content_types import InGroupsView
from linnet.node.control_types import HeartbeatView, SubscribedView

NO_ITEMS = (SubscribedView, HeartbeatView, InGroupsView)
"""What the node does not count among what is consumed."""

Item = TypeVar("Item", bound=msgspec.Struct)


class ItemPrinter(ABC, Generic[Item]):
    """Prints until the source ends, enough is printed, or the time is over."""

    called: tuple[str, str]
    """What is counted: one, and many."""
    look: str
    """The command that shows how it stands."""

    def __init__(self, as_json: bool, count: int | None = None, consumer: Consumer | None = None) -> None:
        """With a `consumer`, what was printed is acknowledged."""
        self._as_json = as_json
        self._count = count
        self._consumer = consumer
        self._acknowledging: Acknowledging | None = None
        self._printed = 0
        self._lost = 0

    def run(self, items: Iterator[Item], timeout: float | None = None) -> None:
        """Print, then end the command: `typer.Exit` with 1 if something was lost or is wanting."""
        expired = False
        with contextlib.ExitStack() as stack:
            if isinstance(items, Generator):
                stack.callback(items.close)
            stack.callback(self._acknowledge)
            try:
                with time_limit(timeout):
                    self._print_all(items)
            except Expired:
                expired = True
            except KeyboardInterrupt:
                pass  # The way to end what has no count.
        if expired and self._count is not None:
            raise Failure(f"{self._printed:,} of {counted(self._count, *self.called)} came in {timeout:g} s")
        if self._lost:
            raise typer.Exit(ExitCode.FAILED)

    @abstractmethod
    def _print(self, item: Item) -> None:
        """Print one."""

    def _print_all(self, items: Iterator[Item]) -> None:
        for item in items:
            self._print(item)
            if self._acknowledging is not None and not isinstance(item, NO_ITEMS):
                self._acknowledging.handled()
            if self._count is not None and self._printed >= self._count:
                return

    def _shown(self, item: Item, line: str) -> None:
        self._printed += 1
        if self._as_json:
            say_json(item)
        else:
            say(line)

    def _beside(self, item: Item, words: str) -> None:
        warn(json_text(item) if self._as_json else words)

    def _began(self, subscription: int) -> None:
        if self._consumer is not None:
            self._acknowledging = Acknowledging(self._consumer, subscription)

    def _ended(self, reason: str | None) -> None:
        if reason is not None:
            code = ExitCode.NO_NODE if reason == Reason.SHUTDOWN else ExitCode.FAILED
            raise Failure(f"it ended: {reason}; look at: {self.look}", code)

    def _acknowledge(self) -> None:
        if self._acknowledging is not None:
            self._acknowledging.finish()
