"""Which peers to hold links to, so that every topic has enough of them and there are few links."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping

from linnet.core.ids import PeerId, TopicId


def cover(topics: Mapping[PeerId, Collection[TopicId]], wanted: Mapping[TopicId, int]) -> list[PeerId]:
    """Peers that together have as many members of each topic as are wanted, or all there are of it.

    Greedy: the peer that serves most topics still lacking comes next; among equals the one that stands
    first, so put those first to whom there is a link. No more than ln(n) + 1 times as many as the best
    choice, which would take exponential time to find (set cover).
    """
    lacking = {topic: number for topic, number in wanted.items() if number > 0}
    order = list(topics)
    heap = [(-_gain(topics[peer], lacking), at) for at, peer in enumerate(order)]
    heapq.heapify(heap)
    chosen: list[PeerId] = []
    while heap and lacking:
        before, at = heap[0]
        gain = _gain(topics[order[at]], lacking)
        if not gain:
            heapq.heappop(heap)
        elif gain < -before:
            heapq.heapreplace(heap, (-gain, at))  # It serves less than when it was last looked at.
        else:
            heapq.heappop(heap)
            chosen.append(order[at])
            _serve(topics[order[at]], lacking)
    return chosen


def uncovered(
    topics: Mapping[PeerId, Collection[TopicId]], wanted: Mapping[TopicId, int], chosen: Collection[PeerId]
) -> dict[TopicId, int]:
    """How many members of each topic are still lacking with these peers."""
    lacking = {topic: number for topic, number in wanted.items() if number > 0}
    for peer in chosen:
        _serve(topics[peer], lacking)
    return lacking


def _gain(has: Collection[TopicId], lacking: Mapping[TopicId, int]) -> int:
    return sum(topic in lacking for topic in has)


def _serve(has: Collection[TopicId], lacking: dict[TopicId, int]) -> None:
    for topic in has:
        left = lacking.get(topic, 0) - 1
        if left > 0:
            lacking[topic] = left
        else:
            lacking.pop(topic, None)
