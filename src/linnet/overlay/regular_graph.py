"""The tracker's graph: a random d-regular graph that follows joins, leaves and failed links.

The algorithm is the dynamic one of the Streamr Network (Juslenius 2021, section 4.2.1), with additions for
cases that the thesis leaves open; see `RegularGraph`. `steger_wormald` makes such a graph at once, as a
baseline.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
from itertools import combinations
from random import Random
from typing import Generic, TypeVar

V = TypeVar("V", bound=Hashable)

_PARTNERS = 8
"""Partners that a node tries in steps 4 and 5; each may cost a look at all edges."""


def always(_a: object, _b: object) -> bool:
    """Return True: every pair suits."""
    return True


class RegularGraph(Generic[V]):
    """A graph in which every node has `degree` neighbours, or all others if there are fewer.

    After each change, with V the nodes that have free slots:

    1. pair random nodes of V that suit each other, while there are such pairs;
    2. leave aside nodes with fewer than two free slots;
    3. for each other v, take a random edge a-b of nodes that suit v, and replace it by a-v and v-b.

    The thesis says neither what happens when step 3 finds no edge, nor to the nodes that step 2
    leaves aside: two adjacent nodes with one free slot each would stay so for good. Here

    4. two nodes u, w with a free slot each that cannot be paired share step 3: a random edge a-b
       with a suitable for u and b for w is replaced by u-a and w-b. So all degrees are exactly
       `degree` again after a loss, when nodes times degree is even;
    5. a node that still lacks two or more takes over the end of an edge from a node that has at
       least two neighbours more. It happens only where most nodes cannot be dialled or many pairs
       are excluded, and keeps anyone from starving.

    With `plain`, only the three published steps are run.

    Steps 1, 3 and 4 add edges, step 5 evens degrees out, and each ends when its search over what
    there is finds nothing: it always terminates.

    Two nodes suit each other if they differ, are not adjacent, at least one of them can be
    dialled, neither is paused, and the caller's `suitable` agrees. Every method that changes the
    graph returns the nodes whose neighbours are other than before, in a replayable order.
    """

    def __init__(
        self, degree: int, rng: Random, suitable: Callable[[V, V], bool] = always, plain: bool = False
    ) -> None:
        self.degree = degree
        self._is_plain = plain
        self._rng = rng
        self._suitable = suitable
        # Both ends map to the same tuple, which is the edge's name in the pool.
        self._adjacent: dict[V, dict[V, tuple[V, V]]] = {}
        self._edges: Pool[tuple[V, V]] = Pool()
        self._free: Pool[V] = Pool()
        self._undialable: dict[V, None] = {}
        self._paused: dict[V, None] = {}
        self._before: dict[V, tuple[V, ...]] = {}
        self.prefers: Callable[[V, V, V | None], bool] | None = None
        """Which of the suitable pairs to prefer in steps 1 and 3, given the neighbour that the second one of
        them loses for it; None: all alike."""

    def __len__(self) -> int:
        return len(self._adjacent)

    def __iter__(self) -> Iterator[V]:
        return iter(self._adjacent)

    def __contains__(self, v: V) -> bool:
        return v in self._adjacent

    def neighbors(self, v: V) -> tuple[V, ...]:
        """Return the neighbours of a node; none if it is not in the graph."""
        return tuple(self._adjacent.get(v, ()))

    def edges(self) -> tuple[tuple[V, V], ...]:
        """Return every edge once."""
        return tuple(self._edges)

    def is_adjacent(self, a: V, b: V) -> bool:
        """Return whether there is an edge between two nodes."""
        return b in self._adjacent.get(a, ())

    def may_connect(self, a: V, b: V) -> bool:
        """Return whether an edge between two nodes of the graph may be made now."""
        return (
            a != b
            and b not in self._adjacent[a]
            and not (a in self._undialable and b in self._undialable)
            and a not in self._paused
            and b not in self._paused
            and self._suitable(a, b)
        )

    def join_node(self, v: V, dialable: bool = True) -> list[V]:
        """Add a node, or resume a paused one: then its edges may serve nodes that have no neighbours."""
        others = [w for w in self._free if not self._adjacent[w]] if v in self._paused else []
        self.add_node(v, dialable)
        self.resume_node(v)
        return self._fill_slots([v, *others])

    def remove_node(self, v: V) -> list[V]:
        """Remove a node; its neighbours get others."""
        if v not in self._adjacent:
            return []
        orphans = list(self._adjacent[v])
        for w in orphans:
            self._disconnect(v, w)
        del self._adjacent[v]
        self._free.discard(v)
        self._undialable.pop(v, None)
        self._paused.pop(v, None)
        return self._fill_slots(orphans)

    def cut_edge(self, a: V, b: V) -> list[V]:
        """Replace a failed link: both ends get other neighbours. `suitable` has to exclude the failed
        pair."""
        if not self.is_adjacent(a, b):
            return []
        self._disconnect(a, b)
        return self._fill_slots([a, b])

    def pause_node(self, v: V) -> None:
        """Keep a node's edges, and give it no new ones until it resumes or joins."""
        if v in self._adjacent:
            self._paused[v] = None
            self._free.discard(v)

    def resume_node(self, v: V) -> None:
        """Let a node have new edges again, at the next change."""
        self._paused.pop(v, None)
        self._note_slots(v)

    def set_dialable(self, v: V, dialable: bool) -> list[V]:
        """Note whether a node can be dialled; edges between two nodes that cannot be are removed."""
        if v not in self._adjacent or dialable == (v not in self._undialable):
            return []
        fresh = [v]
        if dialable:
            del self._undialable[v]
        else:
            self._undialable[v] = None
            for w in [w for w in self._adjacent[v] if w in self._undialable]:
                self._disconnect(v, w)
                fresh.append(w)
        return self._fill_slots(fresh)

    def add_node(self, v: V, dialable: bool = True) -> None:
        """Add a node without giving it neighbours yet."""
        if v in self._adjacent:
            return
        self._adjacent[v] = {}
        if not dialable:
            self._undialable[v] = None
        self._note_slots(v)

    def adopt_edges(self, v: V, neighbors: Iterable[V]) -> list[V]:
        """Adopt existing edges, as far as slots are free at both ends; build no others."""
        self.add_node(v)
        for w in neighbors:
            if w == v or w not in self._adjacent or w in self._adjacent[v]:
                continue
            blind = v in self._undialable and w in self._undialable
            if not blind and self._slots(v) > 0 and self._slots(w) > 0:
                self._connect(v, w)
        return self._take_changed()

    def believe_report(self, v: V, neighbors: Iterable[V]) -> list[V]:
        """Overwrite a node's edges with its report (the naive protocol), cut any excess, and fill free slots.

        Only the reporter's own excess is cut; other nodes above the degree wait for a report of theirs. The
        reporter counts as changed if it must act, that is if its neighbours now differ from its report.
        """
        said = tuple(dict.fromkeys(neighbors))
        blind = self._undialable if v in self._undialable else {}
        believed = {w: None for w in said if w in self._adjacent and w != v and w not in blind}
        gone = [w for w in self._adjacent[v] if w not in believed]
        for w in gone:
            self._disconnect(v, w)
        for w in believed:
            if w not in self._adjacent[v]:
                self._connect(v, w)
        fresh = [v, *gone, *believed]
        while self._slots(v) < 0:
            across = list(self._adjacent[v])
            self._disconnect(v, across[int(self._rng.random() * len(across))])
        self._before[v] = said
        return self._fill_slots(fresh)

    def fill_free_slots(self) -> list[V]:
        """Try to fill every free slot again: after a pause, or when an exclusion has ended."""
        return self._fill_slots(list(self._free))

    def exchange_edges(self, a: V, b: V, c: V, e: V) -> list[V]:
        """Replace the edges a-b and c-e by a-c and b-e, unless that would disconnect the graph."""
        if len({a, b, c, e}) < 4 or not (self.is_adjacent(a, b) and self.is_adjacent(c, e)):
            return []
        if not (self.may_connect(a, c) and self.may_connect(b, e)):
            return []
        self._disconnect(a, b)
        self._disconnect(c, e)
        self._connect(a, c)
        self._connect(b, e)
        if not self.has_path(a, b):
            self._disconnect(a, c)
            self._disconnect(b, e)
            self._connect(a, b)
            self._connect(c, e)
        return self._take_changed()

    def has_path(self, a: V, b: V) -> bool:
        """Return whether there is a path; the search grows from both ends, always at the smaller front."""
        near: dict[V, None] = {a: None}
        far: dict[V, None] = {b: None}
        fronts = ([a], [b])
        while fronts[0] and fronts[1]:
            if any(v in far for v in fronts[0]) or any(v in near for v in fronts[1]):
                return True
            seen, front = (near, fronts[0]) if len(fronts[0]) <= len(fronts[1]) else (far, fronts[1])
            following = dict.fromkeys(w for v in front for w in self._adjacent[v] if w not in seen)
            seen.update(following)
            front[:] = following
        return False

    def _suits_both(self, v: V, edge: tuple[V, V]) -> bool:
        return self.may_connect(v, edge[0]) and self.may_connect(v, edge[1])

    def _slots(self, v: V) -> int:
        return self.degree - len(self._adjacent[v])

    def _note_slots(self, v: V) -> None:
        if self._slots(v) > 0 and v not in self._paused:
            self._free.add(v)
        else:
            self._free.discard(v)

    def _remember(self, v: V) -> None:
        if v not in self._before:
            self._before[v] = tuple(self._adjacent[v])

    def _connect(self, a: V, b: V) -> None:
        self._remember(a)
        self._remember(b)
        edge = (a, b)
        self._adjacent[a][b] = edge
        self._adjacent[b][a] = edge
        self._edges.add(edge)
        self._note_slots(a)
        self._note_slots(b)

    def _disconnect(self, a: V, b: V) -> None:
        self._remember(a)
        self._remember(b)
        self._edges.discard(self._adjacent[a].pop(b))
        del self._adjacent[b][a]
        self._note_slots(a)
        self._note_slots(b)

    def _take_changed(self) -> list[V]:
        before, self._before = self._before, {}
        return [
            v for v, had in before.items() if v in self._adjacent and self._adjacent[v].keys() != set(had)
        ]

    def _fill_slots(self, fresh: Iterable[V]) -> list[V]:
        """Run the steps for nodes whose slots became free; the others were tried before."""
        waiting = list(dict.fromkeys(fresh))
        while waiting:
            waiting = [v for v in waiting if v in self._free]
            self._pair_nodes(list(waiting))
            self._split_edges(waiting)
            if self._is_plain:
                break
            self._share_edges(waiting)
            waiting = self._even_degrees(waiting)
        return self._take_changed()

    def _pair_nodes(self, waiting: list[V]) -> None:
        """Run step 1."""
        while waiting:
            at = int(self._rng.random() * len(waiting))
            i = waiting[at]
            j = self._draw_partner(i) if i in self._free else None
            if j is None:
                # Pairs only get fewer here, so this node need not be tried again.
                waiting[at] = waiting[-1]
                waiting.pop()
            else:
                self._connect(i, j)

    def _draw_partner(self, v: V) -> V | None:
        suits, prefers = partial(self.may_connect, v), self.prefers
        if prefers is None:
            return self._free.draw_suitable(self._rng, suits)
        return self._free.draw_preferred(self._rng, lambda w: prefers(v, w, None), suits)

    def _draw_edge(self, v: V) -> tuple[V, V] | None:
        suits, prefers = partial(self._suits_both, v), self.prefers
        if prefers is None:
            return self._edges.draw_suitable(self._rng, suits)

        def is_preferred(edge: tuple[V, V]) -> bool:
            return prefers(v, edge[0], edge[1]) and prefers(v, edge[1], edge[0])

        return self._edges.draw_preferred(self._rng, is_preferred, suits)

    def _split_edges(self, waiting: list[V]) -> None:
        """Run steps 2 and 3."""
        for v in waiting:
            while self._slots(v) >= 2 and v in self._free:
                edge = self._draw_edge(v)
                if edge is None:
                    break
                self._disconnect(*edge)
                self._connect(edge[0], v)
                self._connect(v, edge[1])

    def _share_edges(self, waiting: list[V]) -> None:
        """Run step 4."""
        for u in waiting:
            while u in self._free and self._share_edge(u):
                pass

    def _share_edge(self, u: V) -> bool:
        partners = [w for w in self._free if w != u]
        for w in self._rng.sample(partners, min(_PARTNERS, len(partners))):

            def fits(edge: tuple[V, V], w: V = w) -> bool:
                a, b = edge
                if w in edge or u in edge:
                    return False
                return (self.may_connect(u, a) and self.may_connect(w, b)) or (
                    self.may_connect(u, b) and self.may_connect(w, a)
                )

            edge = self._edges.draw_suitable(self._rng, fits)
            if edge is None:
                continue
            a, b = edge
            if not (self.may_connect(u, a) and self.may_connect(w, b)):
                a, b = b, a
            self._disconnect(*edge)
            self._connect(u, a)
            self._connect(w, b)
            return True
        return False

    def _even_degrees(self, waiting: list[V]) -> list[V]:
        """Run step 5. Return the nodes that gave an edge away: they have a free slot now."""
        givers: dict[V, None] = {}
        for v in waiting:
            while v in self._free and self._slots(v) >= 2:
                giver = self._take_edge_end(v)
                if giver is None:
                    break
                givers[giver] = None
        return list(givers)

    def _take_edge_end(self, v: V) -> V | None:
        enough = len(self._adjacent[v]) + 2

        def gives(a: V, b: V) -> bool:
            return a != v and len(self._adjacent[a]) >= enough and self.may_connect(v, b)

        bridges: dict[tuple[V, V], None] = {}
        for _ in range(_PARTNERS):
            edge = self._edges.draw_suitable(
                self._rng, lambda e: e not in bridges and (gives(e[0], e[1]) or gives(e[1], e[0]))
            )
            if edge is None:
                return None
            a, b = edge if gives(*edge) else (edge[1], edge[0])
            self._disconnect(a, b)
            self._connect(v, b)
            if self.has_path(a, b):
                return a
            self._disconnect(v, b)
            self._connect(a, b)
            bridges[self._adjacent[a][b]] = None
        return None


_TRIES = 24
"""Draws before all elements are checked: with one in five suitable, 99.5 % need no check."""


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

    def draw(self, rng: Random) -> V:
        """Draw a random element of a pool that has some."""
        return self._elements[int(rng.random() * len(self._elements))]

    def draw_preferred(
        self, rng: Random, is_preferred: Callable[[V], bool], is_suitable: Callable[[V], bool]
    ) -> V | None:
        """Draw a random element among the suitable ones: a preferred one, unless these are few."""
        for _ in range(_TRIES if self._elements else 0):
            element = self.draw(rng)
            if is_preferred(element) and is_suitable(element):
                return element
        return self.draw_suitable(rng, is_suitable)

    def draw_suitable(self, rng: Random, is_suitable: Callable[[V], bool]) -> V | None:
        """Draw a random element among the suitable ones, all equally likely; None if there is none."""
        elements = self._elements
        if len(elements) > _TRIES:
            for _ in range(_TRIES):
                element = elements[int(rng.random() * len(elements))]
                if is_suitable(element):
                    return element
        suitable = [element for element in elements if is_suitable(element)]
        return suitable[int(rng.random() * len(suitable))] if suitable else None


_PAIR_TRIES = 64
"""Draws without a suitable pair before all remaining pairs are checked."""


def steger_wormald(nodes: int, degree: int, rng: Random) -> list[tuple[int, ...]]:
    """Return the neighbours of each of `nodes` nodes in a random `degree`-regular graph made at once.

    The algorithm of Steger and Wormald (1999), on which the tracker's is modelled (Juslenius 2021, section
    4.2.1). It needs all nodes from the start, so it is of no use to a tracker.

    Raises `ValueError` if there is no such graph.
    """
    if not 0 <= degree < nodes or nodes * degree % 2:
        raise ValueError(f"no graph has {nodes} nodes of degree {degree}")
    while True:
        adjacent = _try_pairing(nodes, degree, rng)
        if adjacent is not None:
            return [tuple(neighbors) for neighbors in adjacent]


def _try_pairing(nodes: int, degree: int, rng: Random) -> list[dict[int, None]] | None:
    """Pair points, `degree` of them for each node, until none are left; None if some cannot be paired."""
    points = [node for node in range(nodes) for _ in range(degree)]
    adjacent: list[dict[int, None]] = [{} for _ in range(nodes)]
    while points:
        pair = _find_pair(points, adjacent, rng)
        if pair is None:
            return None
        a, b = (points[place] for place in pair)
        for place in sorted(pair, reverse=True):
            points[place] = points[-1]
            points.pop()
        adjacent[a][b] = None
        adjacent[b][a] = None
    return adjacent


def _find_pair(points: list[int], adjacent: list[dict[int, None]], rng: Random) -> tuple[int, int] | None:
    """Return the indices of two points whose nodes differ and are not adjacent."""

    def suits(i: int, j: int) -> bool:
        return points[i] != points[j] and points[j] not in adjacent[points[i]]

    for _ in range(_PAIR_TRIES):
        i, j = int(rng.random() * len(points)), int(rng.random() * len(points))
        if suits(i, j):
            return i, j
    suitable = [(i, j) for i, j in combinations(range(len(points)), 2) if suits(i, j)]
    return rng.choice(suitable) if suitable else None
