"""For each kind of condition, what finds those that accept a value."""

from __future__ import annotations

from typing import Protocol, TypeVar

from linnet.content.attribute_types.geo_box import Box
from linnet.content.attribute_types.numbers import Span, ordinal
from linnet.content.attribute_types.text import Words
from linnet.content.structures.interval_tree import Intervals

C_contra = TypeVar("C_contra", contravariant=True)


class Finder(Protocol[C_contra]):
    """Conditions of one kind, with a handle each."""

    def add(self, handle: int, condition: C_contra) -> None:
        """Put a condition in."""

    def remove(self, handle: int, condition: C_contra) -> None:
        """Take a condition out that is here."""

    def find(self, value: C_contra) -> list[int]:
        """The handles of all conditions that accept a value, each once."""

    def about(self, value: C_contra) -> int:
        """Roughly how many these are; 0 only if there are none."""


class Spans:
    """Ranges, by the places of their bounds among all floats."""

    __slots__ = ("_intervals",)

    def __init__(self) -> None:
        self._intervals = Intervals()

    def add(self, handle: int, condition: Span) -> None:
        """See `Finder.add`."""
        self._intervals.add(condition.first, condition.last, handle)

    def remove(self, handle: int, condition: Span) -> None:
        """See `Finder.remove`."""
        self._intervals.remove(condition.first, condition.last, handle)

    def find(self, value: Span) -> list[int]:
        """See `Finder.find`."""
        return self._intervals.holding(ordinal(value.low))

    def about(self, value: Span) -> int:
        """See `Finder.about`."""
        return self._intervals.about(ordinal(value.low))


class Beginnings:
    """Texts and how they begin: one look for each length that there is."""

    __slots__ = ("_lengths", "_texts")

    def __init__(self) -> None:
        self._texts: dict[Words, dict[int, None]] = {}
        self._lengths: dict[int, int] = {}
        """How many different beginnings there are of each length."""

    def add(self, handle: int, condition: Words) -> None:
        """See `Finder.add`."""
        kept = self._texts.get(condition)
        if kept is None:
            kept = self._texts[condition] = {}
            if not condition.whole:
                length = len(condition.begins)
                self._lengths[length] = self._lengths.get(length, 0) + 1
        kept[handle] = None

    def remove(self, handle: int, condition: Words) -> None:
        """See `Finder.remove`."""
        kept = self._texts[condition]
        del kept[handle]
        if kept:
            return
        del self._texts[condition]
        if not condition.whole:
            length = len(condition.begins)
            self._lengths[length] -= 1
            if not self._lengths[length]:
                del self._lengths[length]

    def find(self, value: Words) -> list[int]:
        """See `Finder.find`."""
        return [handle for kept in self._accepting(value) for handle in kept]

    def about(self, value: Words) -> int:
        """See `Finder.about`."""
        return sum(map(len, self._accepting(value)))

    def _accepting(self, value: Words) -> list[dict[int, None]]:
        text = value.begins
        asked = [
            value,
            *(Words(text[:length], whole=False) for length in self._lengths if length <= len(text)),
        ]
        return [kept for each in asked if (kept := self._texts.get(each)) is not None]


class Boxes:
    """Boxes, by latitude and by longitude; of what the narrower of both finds each is looked at."""

    __slots__ = ("_boxes", "_high", "_wide")

    def __init__(self) -> None:
        self._boxes: dict[int, Box] = {}
        self._high = Intervals()
        self._wide = Intervals()

    def add(self, handle: int, condition: Box) -> None:
        """See `Finder.add`."""
        self._boxes[handle] = condition
        self._high.add(ordinal(condition.south), ordinal(condition.north), handle)
        for west, east in condition.wide:
            self._wide.add(ordinal(west), ordinal(east), handle)

    def remove(self, handle: int, condition: Box) -> None:
        """See `Finder.remove`."""
        del self._boxes[handle]
        self._high.remove(ordinal(condition.south), ordinal(condition.north), handle)
        for west, east in condition.wide:
            self._wide.remove(ordinal(west), ordinal(east), handle)

    def find(self, value: Box) -> list[int]:
        """See `Finder.find`."""
        latitude, longitude = ordinal(value.south), ordinal(value.west)
        if self._high.about(latitude) <= self._wide.about(longitude):
            found = self._high.holding(latitude)
        else:
            found = self._wide.holding(longitude)
        boxes = self._boxes
        return [handle for handle in found if boxes[handle].covers(value)]

    def about(self, value: Box) -> int:
        """See `Finder.about`."""
        return min(self._high.about(ordinal(value.south)), self._wide.about(ordinal(value.west)))
