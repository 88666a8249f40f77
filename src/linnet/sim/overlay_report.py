"""What a simulated overlay without trackers is asked to do, and what came of it, in numbers."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import asdict, replace

from linnet.core.errors import ConfigError
from linnet.overlay.trackerless.config import TrackerlessConfig
from linnet.sim.links import LatencyTable

_LARGEST = 100_000


class OverlayScenario(Struct, frozen=True, kw_only=True):
    """Nodes with interests, of whom some lie and some come and go."""

    nodes: int = 1000
    topics: int = 100
    subscriptions: int = 10
    """Of each node, on average."""
    liars: float = 0.1
    """Share of nodes that name liars alone and pass nothing on."""
    churn: float = 0.05
    """Share of nodes that are away at any time: so many leave every `away` rounds, for as long."""
    away: int = 10
    """Rounds that one who leaves is away."""
    rounds: int = 400
    """Rounds of gossip after the warm-up."""
    warmup: int = 60
    """Rounds before anything is published or counted."""
    repair: int = 30
    """Rounds after all have come back, before what is missing counts as lost."""
    events: int = 10
    """Published in each topic."""
    friends: int = 3
    """Honest nodes that each honest node trusts."""
    bootstrap: int = 2
    """Addresses that each node is given; they are of five honest nodes."""
    loss: float = 0.0
    """Share of messages that vanish."""
    latency: str | LatencyTable = "aws"
    """A table, or its name: ``aws``, ``constant:MS``, or the path of a file."""
    config: TrackerlessConfig = TrackerlessConfig()
    seed: int = 1

    def check(self) -> None:
        """`ConfigError` if that is no overlay."""
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
        """How many lie."""
        return round(self.nodes * self.liars)


class OverlayReport(Struct, frozen=True, eq=False, kw_only=True):
    """The outcome of one run. Two are equal if all but real time and memory is."""

    nodes: int
    topics: int
    subscriptions: int
    """In all, of honest nodes and liars."""
    liars: int
    rounds: int
    events: int
    hit_ratio: float
    """Pairs of an event and an honest subscriber who was there when it was published, and had it within
    ten seconds by its being passed on alone."""
    hit_ratio_after_repair: float
    """Pairs of an event and any honest subscriber who has it at the end."""
    liar_view_share: float
    """Of all places in the samples of honest nodes, at the end."""
    liar_view_share_peak: float
    """The highest share at any time after the first ten rounds."""
    liar_alike_share: float
    """Of all places among those kept for being alike, at the end."""
    connected_topics: float
    """Share of topics whose honest members form one connected graph at the end."""
    connected_topics_least: float
    """The lowest such share among those who are there, at any time after the warm-up."""
    rings_right: float
    """Share of honest subscriptions whose next on both sides is the true one, liars included."""
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
    """Share of what was handed over that had to be asked for."""
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
    """Of them, those that found nothing in common."""
    trace_sha256: str
    wall_seconds: float
    memory_mb: float
    """The most that the process had."""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong that must never be."""
        return not (self.causal_violations or self.repeated or self.noise)

    def timeless(self) -> OverlayReport:
        """The same, without what real time and memory it took."""
        return replace(self, wall_seconds=0.0, memory_mb=0.0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OverlayReport) and asdict(self.timeless()) == asdict(other.timeless())

    __hash__ = None  # type: ignore[assignment]
