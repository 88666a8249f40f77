"""Machines for the light driver that note what happens to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from linnet.core.ids import PeerId
from linnet.core.inputs import TimerFired
from linnet.sim.clock import START
from linnet.sim.light_network import LightNetwork
from linnet.sim.links import LinkModel, constant_latency

A, B, C = (PeerId(bytes([number]) * 32) for number in (1, 2, 3))
LINKS = LinkModel(constant_latency(100.0))
DIAL = 0.5
"""Two round trips and one way."""


class Said(Struct, frozen=True, gc=False):
    """A message."""

    text: str


class Listening:
    """Notes what happens, and answers as it was told."""

    def __init__(self, **answers: Sequence[Any]) -> None:
        self.seen: list[tuple[float, Any]] = []
        self._answers = answers

    def handle(self, event: Any, now: float) -> Sequence[Any]:  # noqa: ANN401 - as of a machine
        """See `Machine.handle`."""
        self.seen.append((round(now - START, 6), event))
        return self._answers.get(type(event).__name__, ())

    def told(self) -> list[tuple[float, str, object]]:
        """When, what, and of whom or which."""
        return [
            (time, type(event).__name__, event.timer if isinstance(event, TimerFired) else event.peer)
            for time, event in self.seen
        ]


def world_of(*machines: Listening, links: LinkModel = LINKS, **options: Any) -> LightNetwork:  # noqa: ANN401 - passed on
    world = LightNetwork(1, links, **options)
    for peer, machine in zip((A, B, C), machines, strict=False):
        world.add(peer, machine)
    return world
