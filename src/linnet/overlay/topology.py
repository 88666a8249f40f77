"""The tracker's graph: a random d-regular graph that follows joins, leaves and failed links.

The algorithm is the dynamic one of the Streamr Network (Juslenius 2021, section 4.2.1), with
three additions that the thesis leaves open; see `Topology`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
from random import Random
from typing import Generic, TypeVar

from linnet.overlay.pool import Pool

V = TypeVar("V", bound=Hashable)

_PARTNERS = 8
"""Partners that a node tries in steps 4 and 5; each may cost a look at all edges."""


def always(_a: object, _b: object) -> bool:
    """Every pair suits."""
    return True


class Topology(Generic[V]):
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

    def __len__(self) -> int:
        return len(self._adjacent)

    def __iter__(self) -> Iterator[V]:
        return iter(self._adjacent)

    def __contains__(self, v: V) -> bool:
        return v in self._adjacent

    def neighbors(self, v: V) -> tuple[V, ...]:
        """The neighbours of a node; none if it is not in the graph."""
        return tuple(self._adjacent.get(v, ()))

    def edges(self) -> tuple[tuple[V, V], ...]:
        """Every edge once."""
        return tuple(self._edges)

    def is_adjacent(self, a: V, b: V) -> bool:
        """Whether there is an edge between two nodes."""
        return b in self._adjacent.get(a, ())

    def suits(self, a: V, b: V) -> bool:
        """Whether an edge between two nodes of the graph may be made now."""
        return (
            a != b
            and b not in self._adjacent[a]
            and not (a in self._undialable and b in self._undialable)
            and a not in self._paused
            and b not in self._paused
            and self._suitable(a, b)
        )

    def join(self, v: V, dialable: bool = True) -> list[V]:
        """A node comes, or one that was paused is back: then its edges may serve those who found nobody."""
        others = [w for w in self._free if not self._adjacent[w]] if v in self._paused else []
        self.add(v, dialable)
        self.resume(v)
        return self._fill([v, *others])

    def leave(self, v: V) -> list[V]:
        """A node goes; those next to it find others."""
        if v not in self._adjacent:
            return []
        orphans = list(self._adjacent[v])
        for w in orphans:
            self._disconnect(v, w)
        del self._adjacent[v]
        self._free.discard(v)
        self._undialable.pop(v, None)
        self._paused.pop(v, None)
        return self._fill(orphans)

    def sever(self, a: V, b: V) -> list[V]:
        """A link failed; both ends find others. That they do not find each other is `suitable`'s to say."""
        if not self.is_adjacent(a, b):
            return []
        self._disconnect(a, b)
        return self._fill([a, b])

    def pause(self, v: V) -> None:
        """Keep a node's edges, and give it no new ones until it resumes or joins."""
        if v in self._adjacent:
            self._paused[v] = None
            self._free.discard(v)

    def resume(self, v: V) -> None:
        """Let a node have new edges again, at the next change."""
        self._paused.pop(v, None)
        self._note_slots(v)

    def set_dialable(self, v: V, dialable: bool) -> list[V]:
        """A node turned out to be dialable or not; two nodes that cannot be dialled part."""
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
        return self._fill(fresh)

    def add(self, v: V, dialable: bool = True) -> None:
        """Put a node in without giving it neighbours yet."""
        if v in self._adjacent:
            return
        self._adjacent[v] = {}
        if not dialable:
            self._undialable[v] = None
        self._note_slots(v)

    def adopt(self, v: V, neighbors: Iterable[V]) -> list[V]:
        """Learn edges that stand already, as far as slots are free at both ends; nothing is built."""
        self.add(v)
        for w in neighbors:
            if w == v or w not in self._adjacent or w in self._adjacent[v]:
                continue
            blind = v in self._undialable and w in self._undialable
            if not blind and self._slots(v) > 0 and self._slots(w) > 0:
                self._connect(v, w)
        return self._changed()

    def reported(self, v: V, neighbors: Iterable[V]) -> list[V]:
        """Believe what a node reports (the naive protocol): overwrite, cut what is too much, fill.

        Only the reporter's own overflow is cut; others above the degree wait for a report of
        theirs. The reporter counts as changed if it must do something, that is if what it has now
        is not what it reported.
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
        return self._fill(fresh)

    def repair(self) -> list[V]:
        """Look again at every free slot: after a pause, or when an exclusion has ended."""
        return self._fill(list(self._free))

    def exchange(self, a: V, b: V, c: V, e: V) -> list[V]:
        """Replace the edges a-b and c-e by a-c and b-e, unless that would part the graph."""
        if len({a, b, c, e}) < 4 or not (self.is_adjacent(a, b) and self.is_adjacent(c, e)):
            return []
        if not (self.suits(a, c) and self.suits(b, e)):
            return []
        self._disconnect(a, b)
        self._disconnect(c, e)
        self._connect(a, c)
        self._connect(b, e)
        if not self.reaches(a, b):
            self._disconnect(a, c)
            self._disconnect(b, e)
            self._connect(a, b)
            self._connect(c, e)
        return self._changed()

    def reaches(self, a: V, b: V) -> bool:
        """Whether there is a path; the search grows from both ends, always at the smaller front."""
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
        return self.suits(v, edge[0]) and self.suits(v, edge[1])

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

    def _changed(self) -> list[V]:
        before, self._before = self._before, {}
        return [
            v for v, had in before.items() if v in self._adjacent and self._adjacent[v].keys() != set(had)
        ]

    def _fill(self, fresh: Iterable[V]) -> list[V]:
        """Run the steps for nodes whose slots became free; the others were tried before."""
        waiting = list(dict.fromkeys(fresh))
        while waiting:
            waiting = [v for v in waiting if v in self._free]
            self._pair(list(waiting))
            self._interpose(waiting)
            if self._is_plain:
                break
            self._bridge(waiting)
            waiting = self._even_out(waiting)
        return self._changed()

    def _pair(self, waiting: list[V]) -> None:
        """Step 1."""
        while waiting:
            at = int(self._rng.random() * len(waiting))
            i = waiting[at]
            j = self._free.draw(self._rng, partial(self.suits, i)) if i in self._free else None
            if j is None:
                # Pairs only get fewer here, so this node need not be tried again.
                waiting[at] = waiting[-1]
                waiting.pop()
            else:
                self._connect(i, j)

    def _interpose(self, waiting: list[V]) -> None:
        """Steps 2 and 3."""
        for v in waiting:
            while self._slots(v) >= 2 and v in self._free:
                edge = self._edges.draw(self._rng, partial(self._suits_both, v))
                if edge is None:
                    break
                self._disconnect(*edge)
                self._connect(edge[0], v)
                self._connect(v, edge[1])

    def _bridge(self, waiting: list[V]) -> None:
        """Step 4."""
        for u in waiting:
            while u in self._free and self._bridge_once(u):
                pass

    def _bridge_once(self, u: V) -> bool:
        partners = [w for w in self._free if w != u]
        for w in self._rng.sample(partners, min(_PARTNERS, len(partners))):

            def fits(edge: tuple[V, V], w: V = w) -> bool:
                a, b = edge
                if w in edge or u in edge:
                    return False
                return (self.suits(u, a) and self.suits(w, b)) or (self.suits(u, b) and self.suits(w, a))

            edge = self._edges.draw(self._rng, fits)
            if edge is None:
                continue
            a, b = edge
            if not (self.suits(u, a) and self.suits(w, b)):
                a, b = b, a
            self._disconnect(*edge)
            self._connect(u, a)
            self._connect(w, b)
            return True
        return False

    def _even_out(self, waiting: list[V]) -> list[V]:
        """Step 5. Returns the nodes that gave an edge away: they have a free slot now."""
        givers: dict[V, None] = {}
        for v in waiting:
            while v in self._free and self._slots(v) >= 2:
                giver = self._take_end(v)
                if giver is None:
                    break
                givers[giver] = None
        return list(givers)

    def _take_end(self, v: V) -> V | None:
        enough = len(self._adjacent[v]) + 2

        def gives(a: V, b: V) -> bool:
            return a != v and len(self._adjacent[a]) >= enough and self.suits(v, b)

        bridges: dict[tuple[V, V], None] = {}
        for _ in range(_PARTNERS):
            edge = self._edges.draw(
                self._rng, lambda e: e not in bridges and (gives(e[0], e[1]) or gives(e[1], e[0]))
            )
            if edge is None:
                return None
            a, b = edge if gives(*edge) else (edge[1], edge[0])
            self._disconnect(a, b)
            self._connect(v, b)
            if self.reaches(a, b):
                return a
            self._disconnect(v, b)
            self._connect(a, b)
            bridges[self._adjacent[a][b]] = None
        return None
