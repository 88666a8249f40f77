"""The filters of one route, kept as few as they can be without accepting anything else.

What is covered is left out, and what can be merged is merged; what they accept together is exactly what all
predicates that were added accept (Agostinho 2021, section 4.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from linnet.content.kinds.kinds import Condition
from linnet.content.predicates import Attributes, Predicate


class Added(NamedTuple):
    """What came of adding a predicate."""

    stands: Predicate
    """What now accepts all that the predicate does: a filter that was there, itself, or a wider one."""
    covered: bool
    """Whether a filter that was there covers it, so that nothing changed."""
    removed: tuple[Predicate, ...]
    """Filters that it covers, or is merged with; they are gone."""


class Filters:
    """Filters by their number of attributes, in the order in which they came."""

    def __init__(self) -> None:
        self._by_size: dict[int, dict[Predicate, None]] = {}

    def __iter__(self) -> Iterator[Predicate]:
        for size in sorted(self._by_size):
            yield from self._by_size[size]

    def __len__(self) -> int:
        return sum(map(len, self._by_size.values()))

    def __contains__(self, predicate: Predicate) -> bool:
        return predicate in self._by_size.get(predicate.size, {})

    def add(self, predicate: Predicate) -> Added:
        """Add a predicate, and keep the filters few."""
        removed: list[Predicate] = []
        standing = predicate
        while True:
            cover = self.covering(standing)
            if cover is not None:
                # Not on the first round: a wider one that came of a merge is covered by another filter.
                return Added(cover, not removed, tuple(removed))
            partner = self._merge(standing)
            if partner is None:
                break
            standing = partner[1]
            self._drop(partner[0])
            removed.append(partner[0])
        removed += self.subtract(standing)
        self._by_size.setdefault(standing.size, {})[standing] = None
        return Added(standing, False, tuple(removed))

    def covering(self, predicate: Predicate) -> Predicate | None:
        """A filter that accepts all that the predicate does, the smallest first."""
        conditions = dict(predicate.conditions)
        for size in sorted(self._by_size):
            if size > predicate.size:
                break
            for each in self._by_size[size]:
                if each.accepts(conditions):
                    return each
        return None

    def interested(self, attributes: Attributes) -> bool:
        """Whether a filter accepts the event: the smallest are asked first, and one is enough."""
        return self.covering(attributes) is not None

    def matching(self, conditions: Mapping[str, Condition]) -> list[Predicate]:
        """All filters that accept these attributes: the plain scan that an index has to equal."""
        return [each for each in self if each.accepts(conditions)]

    def subtract(self, predicate: Predicate) -> list[Predicate]:
        """Remove all filters that the predicate covers. What it covers in part stays."""
        gone = [each for each in self if each.size >= predicate.size and predicate.covers(each)]
        for each in gone:
            self._drop(each)
        return gone

    def remove(self, predicate: Predicate) -> bool:
        """Remove this very filter; whether it was there."""
        if predicate not in self:
            return False
        self._drop(predicate)
        return True

    def _merge(self, predicate: Predicate) -> tuple[Predicate, Predicate] | None:
        """A filter that can be merged with it, and what comes of both."""
        for each in self._by_size.get(predicate.size, ()):
            merged = each.merged(predicate)
            if merged is not None:
                return each, merged
        return None

    def _drop(self, predicate: Predicate) -> None:
        kept = self._by_size[predicate.size]
        del kept[predicate]
        if not kept:
            del self._by_size[predicate.size]
