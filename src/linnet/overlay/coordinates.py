"""Round-trip times between any two nodes, estimated from the few that were measured.

Vivaldi (Dabek, Cox, Kaashoek, Morris: Vivaldi, a decentralized network coordinate system, 2004)
with heights (section 5.4). Here one place, the tracker, holds all coordinates; it can look at
each sample more than once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from math import sqrt
from random import Random
from typing import Generic, TypeVar

V = TypeVar("V", bound=Hashable)

_GAIN = 0.25
"""How far one sample moves a coordinate, and its error: c_c and c_e of the paper, section 3.3."""

_LEAST_HEIGHT = 1e-5
"""Seconds; a height of zero could never grow, since it is scaled."""

_LEAST_RTT = 1e-6
"""Seconds; the error of a sample is relative to it."""

SAMPLES = 16
"""Measured peers kept for each node, the newest: more than the links it has at a time, since four
samples do not fix the four numbers of a coordinate."""


class _Place:
    """Where a node is: three dimensions, the height of its own access link, and how sure that is."""

    __slots__ = ("error", "height", "x", "y", "z")

    def __init__(self) -> None:
        self.x = self.y = self.z = 0.0
        self.height = _LEAST_HEIGHT
        self.error = 1.0


class Coordinates(Generic[V]):
    """Network coordinates of nodes, by the round-trip times (in seconds) that they report."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._places: dict[V, _Place] = {}
        self._samples: dict[V, dict[V, float]] = {}

    def observe(self, a: V, b: V, rtt: float) -> None:
        """Node a has measured the round-trip time to b."""
        samples = self._samples.setdefault(a, {})
        samples.pop(b, None)
        samples[b] = rtt
        if len(samples) > SAMPLES:
            del samples[next(iter(samples))]
        self._move(a, b, rtt)

    def relax(self, nodes: Iterable[V]) -> None:
        """Look once more at all samples of these nodes."""
        for a in nodes:
            for b, rtt in self._samples.get(a, {}).items():
                if b in self._places:
                    self._move(a, b, rtt)

    def forget(self, v: V) -> None:
        """A node is gone."""
        self._places.pop(v, None)
        self._samples.pop(v, None)

    def estimate(self, a: V, b: V) -> float | None:
        """The round-trip time between two nodes: measured, else estimated; None if nothing is known."""
        measured = self._samples.get(a, {}).get(b) or self._samples.get(b, {}).get(a)
        if measured is not None:
            return measured
        one, other = self._places.get(a), self._places.get(b)
        if one is None or other is None:
            return None
        return _distance(one, other)

    def _place(self, v: V) -> _Place:
        place = self._places.get(v)
        if place is None:
            place = self._places[v] = _Place()
        return place

    def _move(self, a: V, b: V, rtt: float) -> None:
        one, other = self._place(a), self._place(b)
        rtt = max(rtt, _LEAST_RTT)
        x, y, z = one.x - other.x, one.y - other.y, one.z - other.z
        flat = sqrt(x * x + y * y + z * z)
        distance = flat + one.height + other.height
        weight = one.error / (one.error + other.error)
        wrong = abs(distance - rtt) / rtt
        one.error = min(1.0, wrong * _GAIN * weight + one.error * (1 - _GAIN * weight)) or 1e-9
        force = _GAIN * weight * (rtt - distance)
        height = one.height + other.height
        if x == y == z == 0.0:
            # Two nodes at one point are pushed apart in a random direction (section 3.2).
            x, y, z = (self._rng.uniform(-height, height) for _ in range(3))
            flat = sqrt(x * x + y * y + z * z)
        length = flat + height
        one.x += force * x / length
        one.y += force * y / length
        one.z += force * z / length
        one.height = max(_LEAST_HEIGHT, one.height + force * height / length)


def _distance(one: _Place, other: _Place) -> float:
    x, y, z = one.x - other.x, one.y - other.y, one.z - other.z
    return sqrt(x * x + y * y + z * z) + one.height + other.height
