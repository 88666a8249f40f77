"""A machine that asks for the same effects at every input."""

from __future__ import annotations

from collections.abc import Sequence

from linnet.core.hello import WIRE_VERSION, Hello
from linnet.peer.interface import Effect, Input


class Spout:
    """Asks for these effects, whatever happens, and counts how often something did."""

    hello = Hello(WIRE_VERSION, WIRE_VERSION, {})

    def __init__(self, effects: Sequence[Effect]) -> None:
        self._effects = effects
        self.handled = 0

    def handle(self, event: Input, now: float) -> list[Effect]:
        self.handled += 1
        return list(self._effects)
