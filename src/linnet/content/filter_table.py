"""The filter table: the filters of each neighbour, by the attribute whose rendezvous they were sent towards.

Filters are kept apart by attribute, so that an event that comes down from one rendezvous follows the
subscriptions that went there and no others: each subscription is served once.

They are kept in three generations, one that gathers and two that stand. A node's neighbours send their
filters again once in a refresh period, but their clocks are not its own: with two generations, as published,
a filter sent just before one turn and just after the next is missing in between. With three it lives at least
two periods after it was sent.

The filters of one route are kept as few as possible without accepting anything else: covered filters are left
out, and filters are merged where that is exact (Agostinho 2021, section 4.2).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from linnet.content.config import ContentConfig
from linnet.content.matching_index import Index
from linnet.content.predicate import Attributes, Predicate
from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason

GENERATIONS = 3


class _Branches:
    """The filters of all routes under one attribute."""

    def __init__(self) -> None:
        self.generations: list[dict[PeerId, Filters]] = [{} for _ in range(GENERATIONS)]
        """The filters of each route, by generation; the first is the one that gathers."""
        self.index: Index[tuple[PeerId, Predicate]] = Index()

    def add(self, route: PeerId, predicate: Predicate) -> Added:
        added = self.generations[0].setdefault(route, Filters()).add(predicate)
        self._forget(route, added.removed)
        if (route, added.stands) not in self.index:
            self.index.add((route, added.stands), added.stands)
        return added

    def _forget(self, route: PeerId, predicates: tuple[Predicate, ...]) -> None:
        """Take filters out of the index that no generation has any more."""
        for predicate in predicates:
            if not any(predicate in each[route] for each in self.generations if route in each):
                self.index.remove((route, predicate))

    def turn(self) -> None:
        oldest = self.generations.pop()
        self.generations.insert(0, {})
        for route, filters in oldest.items():
            self._forget(route, tuple(filters))

    def drop(self, route: PeerId) -> bool:
        gone = [each.pop(route) for each in self.generations if route in each]
        for filters in gone:
            self._forget(route, tuple(filters))
        return bool(gone)

    def routes(self) -> dict[PeerId, None]:
        return {route: None for each in self.generations for route in each}


class FilterTable:
    """The filters of all routes; the node's own subscriptions are one more route."""

    def __init__(self) -> None:
        self._branches: dict[str, _Branches] = {}

    def __len__(self) -> int:
        return sum(len(branches.index) for branches in self._branches.values())

    @property
    def attributes(self) -> list[str]:
        """The attributes under which some route has filters."""
        return list(self._branches)

    def pairs(self) -> int:
        """Return how many pairs of a route and an attribute there are."""
        return sum(len(branches.routes()) for branches in self._branches.values())

    def count(self, route: PeerId, attribute: str) -> int:
        """Return how many filters of a route the gathering generation has."""
        branches = self._branches.get(attribute)
        return 0 if branches is None else len(branches.generations[0].get(route, ()))

    def check_room(self, route: PeerId, attribute: str, predicate: Predicate, config: ContentConfig) -> None:
        """Raise `RemoteError` if a route may not add another filter."""
        if self.count(route, attribute) >= config.filters:
            raise RemoteError(Reason.TOO_MANY, f"more than {config.filters} filters")
        if len(self) >= config.held:
            raise RemoteError(Reason.TOO_MANY, f"more than {config.held} filters in all")
        if self.pairs() >= config.routes and route not in self.routes(attribute):
            raise RemoteError(Reason.TOO_MANY, f"more than {config.routes} routes")
        if predicate.is_expensive:
            expensive = sum(each.is_expensive for each in self.of_route(route, attribute))
            if expensive >= config.expensive:
                raise RemoteError(Reason.TOO_MANY, f"more than {config.expensive} filters with two ranges")

    def add(self, route: PeerId, attribute: str, predicate: Predicate) -> Added:
        """Keep a filter. It counts as covered only by filters that were sent in this period, so that a
        repeated filter is passed on towards the rendezvous once a period."""
        return self._branches.setdefault(attribute, _Branches()).add(route, predicate)

    def replace(self, route: PeerId, attribute: str, predicates: tuple[Predicate, ...]) -> bool:
        """Replace all filters of a route under an attribute; return whether it had any before."""
        branches = self._branches.get(attribute)
        known = branches is not None and branches.drop(route)
        for predicate in predicates:
            self.add(route, attribute, predicate)
        self._prune(attribute)
        return known

    def drop(self, route: PeerId) -> list[str]:
        """Forget a route; return the attributes under which it had filters."""
        dropped = [name for name, branches in self._branches.items() if branches.drop(route)]
        for name in dropped:
            self._prune(name)
        return dropped

    def turn(self) -> None:
        """End a period: forget the filters that were not sent again for long."""
        for name, branches in list(self._branches.items()):
            branches.turn()
            self._prune(name)

    def _prune(self, attribute: str) -> None:
        branches = self._branches.get(attribute)
        if branches is not None and not branches.routes():
            del self._branches[attribute]

    def interested(self, attribute: str, attributes: Attributes) -> list[PeerId]:
        """Return the routes that want an event that follows this attribute's filters."""
        branches = self._branches.get(attribute)
        if branches is None:
            return []
        return list({route: None for route, _ in branches.index.matching(attributes)})

    def asked(self, attribute: str, but: PeerId | None = None) -> Filters:
        """Return all filters under an attribute, merged into few: they are sent to the next hop."""
        found = Filters()
        for predicate in self._predicates(attribute, but):
            found.add(predicate)
        return found

    def _predicates(self, attribute: str, but: PeerId | None) -> Iterator[Predicate]:
        branches = self._branches.get(attribute)
        if branches is not None:
            for each in branches.generations:
                for route, filters in each.items():
                    if route != but:
                        yield from filters

    def of_route(self, route: PeerId, attribute: str) -> tuple[Predicate, ...]:
        """Return all filters of a route under an attribute."""
        branches = self._branches.get(attribute)
        generations = [] if branches is None else branches.generations
        return tuple({one: None for each in generations if route in each for one in each[route]})

    def routes(self, attribute: str) -> list[PeerId]:
        """Return the routes that have filters under an attribute."""
        branches = self._branches.get(attribute)
        return [] if branches is None else list(branches.routes())


class Added(NamedTuple):
    """The result of adding a predicate."""

    stands: Predicate
    """The filter that now accepts all that the predicate accepts: an earlier one, itself, or a wider one."""
    covered: bool
    """Whether an earlier filter covers the predicate, so that nothing changed."""
    removed: tuple[Predicate, ...]
    """Filters that it covers or was merged with; they are gone."""


class Filters:
    """A set of filters, by number of attributes and in the order in which they came."""

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
                # After the first round: the merged, wider filter is covered by another one.
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
        """Return the smallest filter that accepts all that the predicate accepts; None if there is none."""
        conditions = dict(predicate.conditions)
        for size in sorted(self._by_size):
            if size > predicate.size:
                break
            for each in self._by_size[size]:
                if each.accepts(conditions):
                    return each
        return None

    def subtract(self, predicate: Predicate) -> list[Predicate]:
        """Remove and return all filters that the predicate covers. A filter that it covers in part stays."""
        gone = [each for each in self if each.size >= predicate.size and predicate.covers(each)]
        for each in gone:
            self._drop(each)
        return gone

    def _merge(self, predicate: Predicate) -> tuple[Predicate, Predicate] | None:
        """Find a filter that can be merged with the predicate; return it and the merged one."""
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
