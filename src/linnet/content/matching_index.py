"""Which of many predicates accept an event: the effort grows with what is found, not with how many there are.

Predicates with the same names and kinds have the same *shape*. Shapes are the paths of a trie over names in
their order; an event walks only those paths of which it has every name, at most 2 to the power of its
attributes. Within a shape topics are settled; of its other attributes each has a `Finder`. These count first:
the one with the fewest candidates names them, and they are asked for their other conditions.

The classical counting algorithm (Fabret et al. 2001) counts, for each event, every condition that holds, so a
topic that all predicates have in common makes it linear; here it costs one step.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Generic, TypeVar

from linnet.content.attribute_types.registry import FINDERS, Condition, covers
from linnet.content.predicate import Attributes, Predicate
from linnet.content.structures.conditions import Finder

K = TypeVar("K", bound=Hashable)
_Step = tuple[str, type]


class _Shape:
    """Predicates with the same names and kinds."""

    __slots__ = ("finders", "handles", "places", "size")

    def __init__(self, predicate: Predicate) -> None:
        self.places = {name: place for place, (name, _) in enumerate(predicate.conditions)}
        """Where each name stands in the conditions of all of them."""
        kinds = [(name, FINDERS[type(one)]) for name, one in predicate.conditions if type(one) in FINDERS]
        self.finders: list[tuple[str, Finder[Any]]] = [(name, make()) for name, make in kinds]
        self.handles: dict[int, None] = {}
        """Of a shape that has nothing but topics."""
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
    """Predicates by keys of the caller's, and those of them that accept an event."""

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
        """Keep a predicate under a key; what was under it before is forgotten."""
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
        """Forget what is kept under a key, and tell what it was."""
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
        """The keys of all predicates that accept an event, each once."""
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
