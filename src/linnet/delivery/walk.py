"""The heads walk: what is known here and lies beyond the heads that another names.

As in git, two colours run down the graph from our heads and from theirs, the highest event first. All
that came after an event is higher than it, so an event's colour is final when its turn comes, and the
walk ends when nothing is left that they may lack: its cost is the size of the difference.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from heapq import heappop, heappush
from typing import NamedTuple

from linnet.core.ids import EventId, PeerId
from linnet.delivery.dag import Dag

_WALKS = 8
"""Walks of which the rest is kept, those of the last askers: some eight bytes an event each."""


class Page(NamedTuple):
    """What lies beyond some heads, or the first part of it."""

    ids: tuple[EventId, ...]
    """In causal order."""
    more: bool
    """Whether there is more: it is asked for from the heads that there are once these are applied."""
    unknown: tuple[EventId, ...]
    """Heads that are not in the graph here; the walk cannot tell what lies before them."""


def beyond(dag: Dag, heads: Iterable[EventId], limit: int) -> Page:
    """What is known here and not in the past of those of the heads that are known here.

    The lowest come first, so that each page can be applied by itself. Whoever asks names all its heads,
    those of events that it does not show as well, or it is sent them again.
    """
    asked = tuple(dict.fromkeys(heads))
    known = [head for head in asked if dag.knows(head)]
    ids = difference(dag, known)
    unknown = tuple(head for head in asked if not dag.knows(head))
    return Page(tuple(ids[:limit]), len(ids) > limit, unknown)


def difference(dag: Dag, known: Iterable[EventId]) -> list[EventId]:
    """All that is known here and not in the past of these, the lowest first, then by id."""
    common: dict[EventId, None] = dict.fromkeys(known)
    queue: list[tuple[int, EventId]] = []
    queued: dict[EventId, None] = {}
    lacking = 0
    for id in (*common, *dag.all_heads):
        if id not in queued:
            queued[id] = None
            heappush(queue, (-dag.height(id), id))
            lacking += id not in common
    found: list[tuple[int, EventId]] = []
    while lacking > 0 and queue:
        height, id = heappop(queue)
        shared = id in common
        if not shared:
            lacking -= 1
            found.append((-height, id))
        for ref in dag.refs(id):
            if not dag.knows(ref):
                continue
            if ref not in queued:
                queued[ref] = None
                heappush(queue, (-dag.height(ref), ref))
                lacking += not shared
            elif shared and ref not in common:
                lacking -= 1
            if shared:
                common[ref] = None
    found.sort()
    return [id for _, id in found]


class _Rest:
    """What one asker was shown of a walk, and what is left of it."""

    __slots__ = ("at", "ids", "known", "late", "start", "tops")

    def __init__(self, dag: Dag, start: dict[EventId, None]) -> None:
        self.start = start
        """The heads from which it began."""
        self.ids = difference(dag, start)
        self.at = 0
        """How many of them the asker has, as far as it has said."""
        self.tops: dict[EventId, None] = {}
        """The heads of what it has of them."""
        self.known = len(dag)
        self.late = dag.late


class Walks:
    """The walks of several askers: what `beyond` says, without walking anew for each page.

    Nothing is promised and nothing kept for long: what an asker has is read from the heads that it names, and
    if these do not fit what it was sent the walk begins anew.
    """

    def __init__(self, dag: Dag) -> None:
        self._dag = dag
        self._rests: dict[PeerId, _Rest] = {}

    def page(self, asker: PeerId, heads: Iterable[EventId], limit: int) -> Page:
        """What lies beyond these heads, which are those of the asker now."""
        dag = self._dag
        asked = dict.fromkeys(heads)
        known = {head: None for head in asked if dag.knows(head)}
        rest = self._rests.pop(asker, None)
        if rest is None or not self._goes_on(rest, known):
            rest = _Rest(dag, known)
        ids = tuple(rest.ids[rest.at : rest.at + limit])
        more = rest.at + limit < len(rest.ids) or len(dag) > rest.known
        if more:
            self._rests[asker] = rest
            if len(self._rests) > _WALKS:
                del self._rests[next(iter(self._rests))]
        return Page(ids, more, tuple(head for head in asked if head not in known))

    def forget(self, asker: PeerId) -> None:
        """An asker is gone."""
        self._rests.pop(asker, None)

    def _goes_on(self, rest: _Rest, known: dict[EventId, None]) -> bool:
        """Whether these heads are what one comes to by applying the walk up to some point; go on from there.

        The walk is in ascending order, so the highest of its events among the heads is that point, if the
        heads of all up to it are named. Whoever names anything else has learnt it elsewhere.
        """
        dag = self._dag
        if rest.late != dag.late:
            return False
        places = [self._place(rest, head) for head in known if head not in rest.start]
        upto = max(places, default=-1) + 1
        if -1 in places or upto < rest.at or upto >= len(rest.ids):
            return False
        for id in rest.ids[rest.at : upto]:
            for ref in dag.refs(id):
                rest.tops.pop(ref, None)
            rest.tops[id] = None
        rest.at = upto
        return all(top in known for top in rest.tops)

    def _place(self, rest: _Rest, id: EventId) -> int:
        """Where in a walk an event is; -1: it is not."""
        height = self._dag.height
        place = bisect_left(rest.ids, (height(id), id), key=lambda one: (height(one), one))
        return place if place < len(rest.ids) and rest.ids[place] == id else -1
