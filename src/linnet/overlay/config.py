"""Parameters of the tracker overlay. All nodes of a network should use the same."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

DEFAULT_DEGREE = 4
"""Links of a node in a stream: Streamr's choice in production and in the thesis (section 4)."""


class Overlay(StrEnum):
    """The way in which a node gets its neighbours in a topic."""

    TRACKER = "tracker"
    """From a tracker, which knows all nodes of the topic and gives each its neighbours."""
    RING = "ring"
    """Without a tracker: nodes find each other by gossip, and keep a ring with shortcuts."""


class Control(StrEnum):
    """The protocol between tracker and node (Juslenius 2021, section 4.3)."""

    COUNTER = "counter"
    """Instructions carry a counter, a status answers exactly one of them."""
    NAIVE = "naive"
    """Statuses after each connection, debounced; the tracker believes them. Kept with its flaw."""


class MemberConfig(Struct, frozen=True):
    """How a node follows its trackers."""

    control: Control = Control.COUNTER
    """The protocol spoken with trackers; all nodes of a network must use the same."""
    status_delay: float = 0.2
    """Naive: seconds that a status waits for a newer one, which starts the wait again (section 4.3)."""
    connect_timeout: float = 15.0
    """Seconds until an instructed link counts as failed: above the worst set-up seen, 12 s (section 4.2)."""
    retry_period: float = 10.0
    """Counter: seconds between attempts at the latest instruction, while it is not fulfilled."""
    report_period: float = 30.0
    """Seconds between statuses that only report round-trip times."""
    failover_after: float = 2.0
    """Seconds without a link to the tracker until its standby is asked."""
    return_period: float = 20.0
    """Seconds between attempts to go back from a standby to the tracker that comes first."""


class TrackerConfig(Struct, frozen=True):
    """How a tracker builds graphs."""

    control: Control = Control.COUNTER
    """The protocol spoken with nodes; all nodes of a network must use the same."""
    grace: float = 5.0
    """Seconds that the tracker keeps a node's place after losing the link to it."""
    settle: float = 2.0
    """Seconds after a topic's first join with neighbours before anything is built: a standby that takes over
    learns the existing links, and keeps them."""
    expected: float = 60.0
    """Seconds that a tracker keeps the place of a node that has moved to another tracker, or that others name
    as a neighbour during a take-over but that has not joined itself: three times the period in which nodes go
    back."""
    failed_pair_memory: float = 60.0
    """Seconds that a pair whose link failed is not paired again."""
    near_period: float = 5.0
    """Topology-aware topics: seconds between rounds that exchange links for nearer ones."""
    max_topics: int = 100_000
    """Topics that one tracker accepts."""
    max_nodes: int = 100_000
    """Nodes of one topic that a tracker accepts."""
    max_places: int = 1_000_000
    """Nodes of all topics together that a tracker accepts. Of these three limits: when one is reached, the
    network that takes up most gives way to newcomers from others."""
