"""Who is interested in what, for simulations: drawn in communities, as interests are in life."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from random import Random
from typing import TypeAlias

from linnet.core.errors import ConfigError
from linnet.sim.luck import named_luck

Interests: TypeAlias = tuple[tuple[int, ...], ...]
"""For each node the numbers of its topics, rising."""

COMMUNITY = 50
"""Nodes of one community, about."""
OWN = 0.7
"""Share of a node's topics that are of its community; the rest are anybody's."""
_SKEW = 0.8
"""Topics are the less popular the higher their number: weights fall as its power of minus this."""


def drawn_interests(seed: int, nodes: int, topics: int, subscriptions: int) -> Interests:
    """Each node has about so many topics, most of them shared with its community; no topic is empty."""
    if not 1 <= subscriptions <= topics:
        raise ConfigError(f"a node can have 1 to {topics} subscriptions, not {subscriptions}")
    luck = named_luck(seed, "interests")
    communities = max(1, nodes // COMMUNITY)
    weights = list(accumulate(1.0 / (1 + number) ** _SKEW for number in range(topics)))
    size = min(topics, 2 * subscriptions)
    homes = [_some(luck, weights, size) for _ in range(communities)]
    chosen: list[dict[int, None]] = []
    for node in range(nodes):
        home = homes[node % communities]
        own: dict[int, None] = {}
        while len(own) < subscriptions:
            is_own = luck.random() < OWN
            own[luck.choice(home) if is_own else _one(luck, weights)] = None
        chosen.append(own)
    _fill(luck, chosen, topics)
    return tuple(tuple(sorted(own)) for own in chosen)


def members_of(interests: Interests, topics: int) -> list[list[int]]:
    """For each topic the nodes that are in it."""
    members: list[list[int]] = [[] for _ in range(topics)]
    for node, own in enumerate(interests):
        for topic in own:
            members[topic].append(node)
    return members


def _some(luck: Random, weights: list[float], size: int) -> list[int]:
    found: dict[int, None] = {}
    while len(found) < size:
        found[_one(luck, weights)] = None
    return list(found)


def _one(luck: Random, weights: list[float]) -> int:
    return min(bisect_right(weights, luck.random() * weights[-1]), len(weights) - 1)


def _fill(luck: Random, chosen: list[dict[int, None]], topics: int) -> None:
    """Topics that nobody drew get two members in place of other topics of theirs."""
    counts = [0] * topics
    for own in chosen:
        for topic in own:
            counts[topic] += 1
    for topic, count in enumerate(counts):
        for _ in range(max(0, min(2, len(chosen)) - count)):
            able = [own for own in chosen if topic not in own]
            own = luck.choice(able)
            spare = [other for other in own if counts[other] > 2]
            if spare:
                out = luck.choice(spare)
                del own[out]
                counts[out] -= 1
            own[topic] = None
            counts[topic] += 1
