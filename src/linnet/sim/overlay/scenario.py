"""The scenario of a simulated overlay: its parameters, the interests of its nodes, and its report."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from random import Random
from typing import TypeAlias

from msgspec import Struct

from linnet.core.errors import ConfigError
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.sim.links import LatencyTable
from linnet.sim.report import RunReport
from linnet.sim.seeded_random import named_luck

_LARGEST = 100_000


class OverlayScenario(Struct, frozen=True, kw_only=True):
    """Nodes with interests, some of which lie and some of which come and go."""

    nodes: int = 1000
    topics: int = 100
    subscriptions: int = 10
    """Topics of each node, on average."""
    liars: float = 0.1
    """Share of nodes that name liars alone and pass nothing on."""
    churn: float = 0.05
    """Share of nodes that are down at any time: so many leave every `away` rounds, for as long."""
    away: int = 10
    """Rounds for which a node that leaves is away."""
    rounds: int = 400
    """Rounds of gossip after the warm-up."""
    warmup: int = 60
    """Rounds before anything is published or counted."""
    repair: int = 30
    """Rounds after all nodes are back until missing events count as lost."""
    events: int = 10
    """Events published in each topic."""
    friends: int = 3
    """Honest nodes that each honest node trusts."""
    bootstrap: int = 2
    """Addresses that each node is given, out of five honest nodes."""
    loss: float = 0.0
    """Share of messages that are lost."""
    latency: str | LatencyTable = "aws"
    """A latency table, or its name: ``aws``, ``constant:MS``, or the path of a file."""
    config: TrackerlessConfig = TrackerlessConfig()
    seed: int = 1

    def check(self) -> None:
        """Raise `ConfigError` if this is no possible overlay."""
        if not 2 <= self.nodes <= _LARGEST or not 1 <= self.topics <= _LARGEST:
            raise ConfigError(f"a simulated overlay has 2 to {_LARGEST} nodes and 1 to {_LARGEST} topics")
        if not 1 <= self.subscriptions <= self.topics:
            raise ConfigError(f"a node can have 1 to {self.topics} subscriptions, not {self.subscriptions}")
        if not 0 <= self.liars <= 0.5 or not 0 <= self.churn <= 0.5 or not 0 <= self.loss < 1:
            raise ConfigError("liars and churn are shares up to a half, loss is one below 1")
        if min(self.rounds, self.warmup, self.away, self.events) < 1 or self.repair < 0 or self.friends < 0:
            raise ConfigError("rounds and events are counts of one or more, friends of none or more")

    @property
    def lying(self) -> int:
        """The number of liars."""
        return round(self.nodes * self.liars)


class OverlayReport(RunReport, frozen=True, eq=False, kw_only=True):
    """The outcome of one run."""

    OF_MACHINE = ("wall_seconds", "memory_mb")

    nodes: int
    topics: int
    subscriptions: int
    """Subscriptions in all, of honest nodes and liars."""
    liars: int
    rounds: int
    events: int
    hit_ratio: float
    """Share of pairs of an event and an honest subscriber that was up when it was published, and got it
    within ten seconds by flooding alone."""
    hit_ratio_after_repair: float
    """Share of pairs of an event and any honest subscriber that has it at the end."""
    liar_view_share: float
    """Liars' share of all places in the samples of honest nodes, at the end."""
    liar_view_share_peak: float
    """The highest such share at any time after the first ten rounds."""
    liar_alike_share: float
    """Liars' share of all places among the similar peers of honest nodes, at the end."""
    connected_topics: float
    """Share of topics whose honest members form one connected graph at the end."""
    connected_topics_least: float
    """The lowest such share among running members, at any time after the warm-up."""
    rings_right: float
    """Share of honest subscriptions with the true neighbours on both sides of the ring, liars included."""
    mean_degree: float
    """Neighbours of an honest node, each counted once for all topics."""
    mean_links: float
    """Open links of an honest node, those of gossip included."""
    mean_hops: float
    """Links that first copies crossed."""
    max_hops: int
    mean_delay_ms: float
    """From publication to first copy."""
    duplication: float
    """Copies that honest nodes were sent for each event that they were handed."""
    fetched: float
    """Share of handed-over events that had to be requested."""
    causal_violations: int
    """Events handed over before their causes."""
    repeated: int
    """Events handed over a second time."""
    noise: int
    """Events that reached a node that is not in their topic."""
    join_rounds: float
    """Rounds until half of all subscriptions had a neighbour."""
    messages: int
    intersections: int
    intersections_empty: int
    """Completed intersections that found no topic in common."""
    trace_sha256: str
    wall_seconds: float
    memory_mb: float
    """The most memory that the process used."""

    @property
    def ok(self) -> bool:
        """Whether no promise was broken."""
        return not (self.causal_violations or self.repeated or self.noise)


Interests: TypeAlias = tuple[tuple[int, ...], ...]
"""For each node the numbers of its topics, rising."""

COMMUNITY = 50
"""Approximate number of nodes in a community."""
OWN = 0.7
"""Share of a node's topics that are its community's; the rest are drawn from all."""
_SKEW = 0.8
"""The popularity of topics falls with their number: its weight is the number's power of minus this."""


def drawn_interests(seed: int, nodes: int, topics: int, subscriptions: int) -> Interests:
    """Draw topics for each node, most of them shared with its community; no topic stays empty."""
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
    """Return the member nodes of each topic."""
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
    """Give topics that no node drew two members each, in place of other topics of theirs."""
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
