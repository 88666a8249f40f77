"""What a stream scenario is made of."""

from __future__ import annotations

from msgspec import Struct

from linnet.overlay.config import DEFAULT_DEGREE, Control
from linnet.sim.links import LatencyTable

STREAM = "simulation"
"""The name of the one stream of a scenario."""


class StreamScenario(Struct, frozen=True):
    """One tracker, so many nodes in one stream, so many events, and what goes wrong."""

    nodes: int = 32
    degree: int = DEFAULT_DEGREE
    control: Control = Control.COUNTER
    near: bool = False
    """Whether half of each node's links go to near nodes."""
    latency: str | LatencyTable = "aws"
    """A table, or its name; nodes are spread evenly over its regions.

    Names are ``aws``, ``constant:MS``, and the path of a file.
    """
    messages: int = 50
    """Events in all, each from a node that the seed draws."""
    seed: int = 1
    join: float = 0.0
    """Seconds between joins; 0: all at once."""
    gap: float = 1.0
    """Seconds between events: above the slowest path they do not overlap."""
    body_bytes: int = 64
    loss: float = 0.0
    """Probability that a single message on a link vanishes."""
    jitter: float = 0.0
    """Seconds that a message may take longer."""
    bandwidth: float | None = None
    """Bytes a second in each direction of a link; None: no bound."""
    churn: float | None = None
    """Mean seconds that a node stays up while events are published; None: nobody goes."""
    churn_down: float = 5.0
    """Mean seconds that a node which went stays away."""
    storage: int = 0
    """Nodes that keep the stream for the others, besides those that only take part."""
    suppress: float = 0.0
    """Seconds that an event is held back, to skip neighbours that send it meanwhile."""
    tracker_region: str = "eu-central-1"
    """Where the tracker is, if the table has that region; otherwise in its first one."""
    still: bool = False
    """Whether the tracker falls silent before the first event, so that the overlay stays as it is."""
    settle_limit: float = 120.0
    """Seconds after the last join at which events are published, whether the overlay is regular or not."""
    until: float | None = None
    """Virtual seconds at which the run ends; None: when all that was published has had time to arrive."""
