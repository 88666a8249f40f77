"""The heads walk: what is known here and lies beyond the heads that another names.

As in git, two colours run down the graph from our heads and from theirs, the highest event first. All
that came after an event is higher than it, so an event's colour is final when its turn comes, and the
walk ends when nothing is left that they may lack: its cost is the size of the difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import NamedTuple

from linnet.core.ids import EventId
from linnet.delivery.dag import Dag


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
