"""A collection from which a random element is drawn in constant time, with a replayable order."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from random import Random
from typing import Generic, TypeVar

V = TypeVar("V", bound=Hashable)

_TRIES = 24
"""Draws before all elements are looked at: with one in five suitable, 99.5 % need no look."""


class Pool(Generic[V]):
    """Distinct elements in a list, so that drawing, adding and removing take constant time.

    The order depends only on what was added and removed, never on hashes.
    """

    def __init__(self) -> None:
        self._elements: list[V] = []
        self._places: dict[V, int] = {}

    def __len__(self) -> int:
        return len(self._elements)

    def __iter__(self) -> Iterator[V]:
        return iter(self._elements)

    def __contains__(self, element: V) -> bool:
        return element in self._places

    def add(self, element: V) -> None:
        """Put an element in, if it is not there yet."""
        if element not in self._places:
            self._places[element] = len(self._elements)
            self._elements.append(element)

    def discard(self, element: V) -> None:
        """Take an element out, if it is there; the last one moves to its place."""
        place = self._places.pop(element, None)
        if place is None:
            return
        last = self._elements.pop()
        if place < len(self._elements):
            self._elements[place] = last
            self._places[last] = place

    def draw(self, rng: Random, is_suitable: Callable[[V], bool]) -> V | None:
        """A random element among the suitable ones, all equally likely; None if there is none."""
        elements = self._elements
        if len(elements) > _TRIES:
            for _ in range(_TRIES):
                element = elements[int(rng.random() * len(elements))]
                if is_suitable(element):
                    return element
        suitable = [element for element in elements if is_suitable(element)]
        return suitable[int(rng.random() * len(suitable))] if suitable else None
