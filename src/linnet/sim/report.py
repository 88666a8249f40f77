"""What a simulated stream is like, in numbers."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import asdict, replace


class StreamReport(Struct, frozen=True, eq=False):
    """The outcome of one stream scenario. Two are equal if all but the real times are."""

    nodes: int
    degree_min: int
    degree_max: int
    regular: bool
    """Whether every node has the degree that was asked for, as far as numbers allow."""
    completeness: float
    """Share of (message, other node) that the applications were handed."""
    messages: int
    """Events that were published: with churn, some of those that were to do so are away."""
    sends_per_message: float
    duplicates_per_message: float
    """Duplicates at all nodes together, for each message."""
    received: int
    """Messages that machines were handed while events were published: new ones, duplicates, control."""
    mean_delay_ms: float
    """From publication to first receipt, over all (message, other node)."""
    p99_delay_ms: float
    estimate_ms: float
    """Mean shortest path from the nodes that published, weighted by messages, over the final overlay."""
    estimate_all_ms: float
    """Mean shortest path from every node."""
    mean_hops: float
    max_hops: int
    mean_edge_delay_ms: float
    """Mean latency of the overlay's links: below the pairs' mean, near nodes are preferred."""
    pair_mean_delay_ms: float
    """Mean latency of all pairs of nodes."""
    converged_at: float | None
    """Virtual seconds until the overlay changed for the last time before the first message."""
    control_messages: int
    """Messages between tracker and nodes about the overlay, in both directions, until the first message."""
    statuses_stale: int
    """Those that were rejected as out of date."""
    virtual_seconds: float
    trace_sha256: str
    wall_seconds: float
    receives_per_second: float
    """Messages handled for each second of one core's time, while events were published."""

    def timeless(self) -> StreamReport:
        """The report without what depends on the machine that ran it."""
        return replace(self, wall_seconds=0.0, receives_per_second=0.0)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StreamReport):
            return NotImplemented
        return asdict(self.timeless()) == asdict(other.timeless())

    def __hash__(self) -> int:
        return hash(self.trace_sha256)
