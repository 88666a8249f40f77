"""Telling the node that items were handled, without waiting for it at each of them."""

from __future__ import annotations

import threading
from typing import Protocol

from linnet.core.errors import LinnetError


class Consumer(Protocol):
    """Who is told; `linnet.node.client.ControlClient` is one."""

    def consumed(self, subscription: int, items: int) -> None:
        """So many more items were handled; returns when that is durable."""


class Acknowledging:
    """A thread that acknowledges: what is handled while one request is under way goes with the next."""

    def __init__(self, control: Consumer, subscription: int) -> None:
        self._control = control
        self._subscription = subscription
        self._handled = 0
        self._is_over = False
        self._changed = threading.Condition()
        self._error: LinnetError | None = None
        self._thread = threading.Thread(target=self._run, name="acknowledge", daemon=True)
        self._thread.start()

    def handled(self) -> None:
        """One more item was handled. Raises what went wrong with earlier ones."""
        with self._changed:
            if self._error is not None:
                raise self._error
            self._handled += 1
            self._changed.notify()

    def finish(self) -> None:
        """Return when all that was handled is acknowledged; raises if it could not be."""
        with self._changed:
            self._is_over = True
            self._changed.notify()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._handled or self._is_over)
                handled, self._handled = self._handled, 0
            if not handled:
                return
            try:
                self._control.consumed(self._subscription, handled)
            except LinnetError as error:
                with self._changed:
                    self._error = error
                return
