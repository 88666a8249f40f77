"""An application that reads at a node which is killed and started again, and that survives it."""

from __future__ import annotations

import contextlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from random import Random

from linnet.api.items import HeartbeatView, SubscribedView
from linnet.cli.play.nodes import LiveNode
from linnet.core.errors import LinnetError
from linnet.delivery.commands import Consumed
from linnet.node.client import ControlClient

UNREACHED = (LinnetError, RuntimeError)
"""What a call to a node can end with that is killed meanwhile; the last is a client closed under it."""


class LastingReader(threading.Thread, ABC):
    """Reads something durably at one node, and reads on whenever the node is back.

    Items are said to be handled a few at a time, as its luck will have it.
    """

    most = 4
    """Items that it handles before it says so."""

    def __init__(self, name: str, node: LiveNode, luck: Random) -> None:
        super().__init__(name=name, daemon=True)
        self.node = node
        self._luck = luck
        self._ended = threading.Event()
        self._reading: ControlClient | None = None
        self._began = threading.Event()
        self.lives = 0
        """How often it has subscribed."""
        self.settled: dict[Hashable, int] = {}
        """What the node has said to be handled for good, and in which life it said so first."""
        self.strange: list[str] = []
        """What came that was not expected."""

    @abstractmethod
    def _items(self, reading: ControlClient) -> Iterator[object]:
        """Subscribe; everything that comes."""

    @abstractmethod
    def _take(self, item: object) -> Hashable | None:
        """Remember an item; by what it will be known as handled, None if it need not be."""

    def _settle(self, handled: list[Hashable]) -> None:
        """The node has said that it is durable that these were handled."""
        # In a later life it may come and be handled again, which is what a judge looks for.
        for each in handled:
            self.settled.setdefault(each, self.lives)

    def run(self) -> None:
        """Read, and read on whenever the node is back."""
        while not self._ended.wait(0.1):
            if self.node.is_up:
                with contextlib.suppress(*UNREACHED):
                    self._live()

    def await_subscription(self, limit: float) -> None:
        """Return once it has subscribed for the first time; `TimeoutError` if that takes too long."""
        if not self._began.wait(limit):
            raise TimeoutError(f"{self.name}: no subscription within {limit:.0f} s")

    def end(self) -> None:
        """Stop reading."""
        self._ended.set()
        if self._reading is not None:
            self._reading.cut()
        self.join(10.0)

    def _live(self) -> None:
        home = self.node.home.path
        with ControlClient(home) as reading, ControlClient(home) as telling:
            self._reading = reading
            number, due = 0, self._luck.randint(1, self.most)
            untold: list[Hashable | None] = []
            for item in self._items(reading):
                if self._ended.is_set():
                    return
                match item:
                    case SubscribedView(subscription=number):
                        self.lives += 1
                        self._began.set()
                    case HeartbeatView():
                        pass
                    case _:
                        untold.append(self._take(item))
                if len(untold) >= due:
                    telling.ask(Consumed(number, len(untold)))
                    self._settle([each for each in untold if each is not None])
                    untold, due = [], self._luck.randint(1, self.most)
