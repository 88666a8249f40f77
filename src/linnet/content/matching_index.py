"""Finds the predicates that accept an event: the effort grows with the matches, not with all predicates.

Predicates with the same names and kinds have the same *shape*. Shapes are the paths of a trie over names in
order; an event walks only the paths that it has every name of, at most 2 to the power of its number of
attributes. Within a shape the topics are settled; each other attribute has a `Finder`. The finders first
count their candidates: the one with the fewest returns them, and these are checked for their other
conditions.

The classical counting algorithm (Fabret et al. 2001) counts, for each event, every condition that holds, so a
topic that all predicates have in common makes it linear; here it costs one step.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Mapping
from typing import Generic, Protocol, TypeVar, cast

from linnet.content.attribute_types.geo_box import Box
from linnet.content.attribute_types.numbers import DateRange, NumberRange, Span, ordinal
from linnet.content.attribute_types.text import Words
from linnet.content.predicate import Attributes, Condition, Predicate, covers

K = TypeVar("K", bound=Hashable)
C = TypeVar("C", NumberRange, DateRange, Words, Box)
C_contra = TypeVar("C_contra", contravariant=True)
_Step = tuple[str, type]


class Finder(Protocol[C_contra]):
    """Finds those of many conditions of one kind that accept a value; each condition has a handle."""

    def add(self, handle: int, condition: C_contra) -> None:
        """Add a condition."""

    def remove(self, handle: int, condition: C_contra) -> None:
        """Remove a condition that was added."""

    def find(self, value: C_contra) -> list[int]:
        """Return the handles of all conditions that accept a value, each once."""

    def about(self, value: C_contra) -> int:
        """Return roughly how many conditions accept a value; 0 only if none does."""


class _Shape:
    """The predicates with the same names and kinds."""

    __slots__ = ("finders", "handles", "places", "size")

    def __init__(self, predicate: Predicate) -> None:
        self.places = {name: place for place, (name, _) in enumerate(predicate.conditions)}
        """The place of each name among the conditions, the same in all of them."""
        kinds = [(name, FINDERS[type(one)]) for name, one in predicate.conditions if type(one) in FINDERS]
        self.finders: list[tuple[str, Finder[Condition]]] = [(name, make()) for name, make in kinds]
        self.handles: dict[int, None] = {}
        """The handles of all predicates, only used in a shape that has nothing but topics."""
        self.size = 0

    def add(self, handle: int, conditions: Mapping[str, Condition]) -> None:
        self.size += 1
        if not self.finders:
            self.handles[handle] = None
        for name, finder in self.finders:
            finder.add(handle, conditions[name])

    def remove(self, handle: int, conditions: Mapping[str, Condition]) -> None:
        self.size -= 1
        if not self.finders:
            del self.handles[handle]
        for name, finder in self.finders:
            finder.remove(handle, conditions[name])


class _Node:
    """A place in the trie."""

    __slots__ = ("children", "shape")

    def __init__(self) -> None:
        self.children: dict[_Step, _Node] = {}
        self.shape: _Shape | None = None


class Index(Generic[K]):
    """Predicates under keys of the caller's; finds the keys of those that accept an event."""

    def __init__(self) -> None:
        self._root = _Node()
        self._handles: dict[K, int] = {}
        self._entries: dict[int, tuple[K, Predicate]] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._handles

    def add(self, key: K, predicate: Predicate) -> None:
        """Keep a predicate under a key, in place of an earlier one."""
        if key in self._handles:
            self.remove(key)
        handle, self._next = self._next, self._next + 1
        self._handles[key] = handle
        self._entries[handle] = (key, predicate)
        node = self._root
        for name, condition in predicate.conditions:
            step = (name, type(condition))
            child = node.children.get(step)
            if child is None:
                child = node.children[step] = _Node()
            node = child
        if node.shape is None:
            node.shape = _Shape(predicate)
        node.shape.add(handle, dict(predicate.conditions))

    def remove(self, key: K) -> Predicate | None:
        """Forget the predicate under a key, and return it."""
        handle = self._handles.pop(key, None)
        if handle is None:
            return None
        _, predicate = self._entries.pop(handle)
        path = [self._root]
        steps = [(name, type(condition)) for name, condition in predicate.conditions]
        for step in steps:
            path.append(path[-1].children[step])
        shape = path[-1].shape
        if shape is not None:
            shape.remove(handle, dict(predicate.conditions))
            if not shape.size:
                path[-1].shape = None
        for step in reversed(steps):
            if path[-1].shape is not None or path[-1].children:
                break
            path.pop()
            del path[-1].children[step]
        return predicate

    def matching(self, attributes: Attributes) -> list[K]:
        """Return the keys of all predicates that accept an event, each once."""
        conditions = dict(attributes.conditions)
        steps = [(name, type(condition)) for name, condition in attributes.conditions]
        entries = self._entries
        found: list[K] = []
        open_paths = [(self._root, 0)]
        while open_paths:
            node, start = open_paths.pop()
            if node.shape is not None:
                found += [entries[handle][0] for handle in self._accepting(node.shape, conditions)]
            for at in range(start, len(steps)):
                child = node.children.get(steps[at])
                if child is not None:
                    open_paths.append((child, at + 1))
        return found

    def _accepting(self, shape: _Shape, conditions: Mapping[str, Condition]) -> list[int]:
        finders = shape.finders
        if not finders:
            return list(shape.handles)
        if len(finders) == 1:
            name, finder = finders[0]
            return finder.find(conditions[name])
        counts = [finder.about(conditions[name]) for name, finder in finders]
        fewest = min(counts)
        if not fewest:
            return []
        chosen, finder = finders[counts.index(fewest)]
        kept = finder.find(conditions[chosen])
        entries = self._entries
        for name, _ in finders:
            if name != chosen:
                # All of a shape have conditions of the same kinds at the same places.
                place, value = shape.places[name], conditions[name]
                kept = [each for each in kept if covers(entries[each][1].conditions[place][1], value)]
        return kept


_LEVEL_BITS = 7
_BELOW = 1 << 63
"""Added to a number, so that none is negative."""
_FEW = 24
"""Intervals of a block that are checked one by one; a block with more is sorted."""


class _Many:
    """The intervals of a full block, sorted by their beginnings and, the last first, by their ends."""

    __slots__ = ("firsts", "lasts")

    def __init__(self, few: array[int]) -> None:
        self.firsts = SortedRuns()
        self.lasts = SortedRuns()
        for at in range(0, len(few), 3):
            self.add(few[at], few[at + 1], few[at + 2])

    def add(self, first: int, last: int, handle: int) -> None:
        self.firsts.add(first, handle)
        self.lasts.add(-last, handle)

    def remove(self, first: int, last: int, handle: int) -> None:
        self.firsts.remove(first, handle)
        self.lasts.remove(-last, handle)


class Intervals:
    """Finds the intervals that hold a number: 64-bit whole numbers, a handle each, bounds included.

    An interval tree whose middles are fixed: an interval lies in the smallest dyadic block that holds all of
    it (Edelsbrunner 1980 chooses middles from the data, and has to be rebuilt as they change). It holds the
    middle of that block, so a number below the middle lies in those of the block's intervals that begin early
    enough, and a number above it in those that end late enough. A number lies in one block of each size: 65
    looks at most, however many intervals there are, and then only the intervals found.
    """

    __slots__ = ("_blocks", "_levels")

    def __init__(self) -> None:
        self._blocks: dict[int, array[int] | _Many] = {}
        self._levels: dict[int, int] = {}
        """How many blocks there are of each size."""

    def add(self, first: int, last: int, handle: int) -> None:
        """Add an interval."""
        level, name = _block(first, last)
        block = self._blocks.get(name)
        if block is None:
            self._levels[level] = self._levels.get(level, 0) + 1
            self._blocks[name] = array("q", (first, last, handle))
        elif isinstance(block, _Many):
            block.add(first, last, handle)
        else:
            block.extend((first, last, handle))
            if len(block) > 3 * _FEW:
                self._blocks[name] = _Many(block)

    def remove(self, first: int, last: int, handle: int) -> None:
        """Remove an interval that was added."""
        level, name = _block(first, last)
        block = self._blocks[name]
        if isinstance(block, _Many):
            block.remove(first, last, handle)
            is_empty = not len(block.firsts)
        else:
            at = 3 * block[2::3].index(handle)
            del block[at : at + 3]
            is_empty = not block
        if is_empty:
            del self._blocks[name]
            self._levels[level] -= 1
            if not self._levels[level]:
                del self._levels[level]

    def holding(self, number: int) -> list[int]:
        """Return the handles of the intervals that hold a number."""
        found: list[int] = []
        blocks, from_zero = self._blocks, number + _BELOW
        for level in self._levels:
            block = blocks.get(from_zero >> level << _LEVEL_BITS | level)
            if block is None:
                continue
            if isinstance(block, _Many):
                if level and not from_zero >> (level - 1) & 1:
                    found += block.firsts.up_to(number)
                else:
                    found += block.lasts.up_to(-number)
            else:
                for at in range(0, len(block), 3):
                    if block[at] <= number <= block[at + 1]:
                        found.append(block[at + 2])
        return found

    def about(self, number: int) -> int:
        """Return roughly how many intervals hold a number, with less effort than finding them."""
        count = 0
        blocks, from_zero = self._blocks, number + _BELOW
        for level in self._levels:
            block = blocks.get(from_zero >> level << _LEVEL_BITS | level)
            if block is None:
                continue
            if isinstance(block, _Many):
                lower = level and not from_zero >> (level - 1) & 1
                count += block.firsts.about(number) if lower else block.lasts.about(-number)
            else:
                count += len(block) // 3
        return count


def _block(first: int, last: int) -> tuple[int, int]:
    """Return the size of the smallest block that holds an interval, and the name of the block."""
    low = first + _BELOW
    level = (low ^ (last + _BELOW)).bit_length()
    return level, low >> level << _LEVEL_BITS | level


_RUN = 1024
"""Handles in one run, at most."""


class SortedRuns:
    """Sorted pairs of a number and a handle, both of 64 bits: 16 bytes for each pair."""

    __slots__ = ("_handles", "_keys", "_run", "_size", "_tops")

    def __init__(self, run: int = _RUN) -> None:
        self._run = run
        self._keys: list[array[int]] = [array("q")]
        self._handles: list[array[int]] = [array("q")]
        self._tops: list[tuple[int, int]] = []
        """The last pair of each run but the last."""
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, key: int, handle: int) -> None:
        """Add a pair that is not here."""
        number, at = self._place(key, handle)
        keys, handles = self._keys[number], self._handles[number]
        keys.insert(at, key)
        handles.insert(at, handle)
        self._size += 1
        if len(keys) > self._run:
            self._split(number)

    def remove(self, key: int, handle: int) -> None:
        """Remove a pair that is here."""
        number, at = self._place(key, handle)
        keys, handles = self._keys[number], self._handles[number]
        if at >= len(keys) or keys[at] != key or handles[at] != handle:
            raise KeyError(handle)
        del keys[at], handles[at]
        self._size -= 1
        if not keys and len(self._keys) > 1:
            del self._keys[number], self._handles[number]
            del self._tops[min(number, len(self._tops) - 1)]

    def up_to(self, key: int) -> list[int]:
        """Return the handles of all pairs whose number is at most this one."""
        found: list[int] = []
        for keys, handles in zip(self._keys, self._handles, strict=True):
            if not keys or keys[-1] <= key:
                found += handles
            else:
                found += handles[: bisect_right(keys, key)]
                break
        return found

    def about(self, key: int) -> int:
        """Return roughly how many pairs these are: all runs are taken as equally long."""
        number = bisect_right(self._tops, key, key=_first)
        here = bisect_right(self._keys[number], key)
        return min(self._size, number * self._size // len(self._keys) + here)

    def _place(self, key: int, handle: int) -> tuple[int, int]:
        """Return the run where a pair is or would be, and its place there."""
        number = bisect_left(self._tops, (key, handle))
        keys = self._keys[number]
        low = bisect_left(keys, key)
        return number, bisect_left(self._handles[number], handle, low, bisect_right(keys, key, low))

    def _split(self, number: int) -> None:
        keys, handles = self._keys[number], self._handles[number]
        middle = len(keys) // 2
        self._keys.insert(number + 1, keys[middle:])
        self._handles.insert(number + 1, handles[middle:])
        del keys[middle:], handles[middle:]
        self._tops.insert(number, (keys[-1], handles[-1]))


def _first(pair: tuple[int, int]) -> int:
    return pair[0]


class Spans:
    """Finds ranges that hold a value, by the places of their bounds among all floats."""

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
    """Finds texts and beginnings that accept a text: one look for each length of beginning that there is."""

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
    """Finds boxes that hold a point, by latitude or longitude, whichever finds fewer, and checks each."""

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


def _found_by(kind: type[C], make: Callable[[], Finder[C]]) -> tuple[type, Callable[[], Finder[Condition]]]:
    """Pair a kind of condition with its finder, which is handed no conditions of other kinds."""
    return kind, cast("Callable[[], Finder[Condition]]", make)


FINDERS = dict(
    (
        _found_by(NumberRange, Spans),
        _found_by(DateRange, Spans),
        _found_by(Words, Beginnings),
        _found_by(Box, Boxes),
    )
)
"""The finder for each kind of condition. A topic needs none: it is there or not."""
