"""Parameters of overlays without trackers. All nodes of a network should use the same."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from linnet.overlay.gossip.messages import DESCRIPTORS, FILTER_BYTES

DAY = 86_400.0


class RingOrder(StrEnum):
    """The position of a node on the rings of its topics."""

    ID = "id"
    """By its key, the same on all rings: neighbours recur, so there are fewer links."""
    HASH = "hash"
    """By a hash of topic, epoch and key: nobody can choose to stand beside a victim for long."""


class TrackerlessConfig(Struct, frozen=True):
    """How a node without trackers finds others, and what it discloses of itself."""

    period: Annotated[float, Meta(ge=0.1, le=3600.0)] = 10.0
    """Seconds between rounds of gossip, give or take a fifth."""
    hurried: Annotated[int, Meta(ge=0, le=1000)] = 10
    """Rounds after the start that take a tenth of the period, so that a new node is found soon."""
    view: Annotated[int, Meta(ge=2, le=256)] = 20
    """Peers in the random sample of all nodes."""
    close: Annotated[int, Meta(ge=1, le=256)] = 20
    """Peers kept for having similar interests."""
    answer: Annotated[int, Meta(ge=2, le=DESCRIPTORS)] = 20
    """Descriptors in an answer to a pull."""
    gossip: Annotated[int, Meta(ge=3, le=DESCRIPTORS - 1)] = 10
    """Descriptors in an answer about similar peers, or about one ring."""
    introductions: Annotated[int, Meta(ge=1, le=1000)] = 10
    """Strangers that may introduce themselves to this node in a period."""
    same_prefix: Annotated[int, Meta(ge=1, le=256)] = 4
    """Peers of one address prefix (IPv4 /24, IPv6 /48) in the random sample, unless it is our own prefix:
    keys cost nothing, addresses do."""
    sketch_rows: Annotated[int, Meta(ge=1, le=16)] = 4
    """Rows of counters of the sampler: the more, the less often a rare id is taken for a frequent one."""
    sketch_columns: Annotated[int, Meta(ge=16, le=262_144)] = 1024
    """Counters of the sampler; four for each invented key that it is to withstand."""
    quantile: Annotated[float, Meta(ge=0.01, le=1.0)] = 0.25
    """Quantile of the non-zero counters up to which an id is admitted to the sample for certain."""
    halve_rounds: Annotated[int, Meta(ge=1, le=100_000)] = 100
    """Rounds after which all counters are halved: about two appearances of each id."""
    trusted_share: Annotated[float, Meta(ge=0.0, le=1.0)] = 0.25
    """Share of pulls that go to peers that the user trusts, if there are any."""
    epsilon: Annotated[float, Meta(ge=0.5, le=100.0)] = 3.0
    """The most that a released filter discloses of one topic (epsilon of differential privacy), in each epoch
    anew."""
    filter_bits: Annotated[int, Meta(ge=256, le=8 * FILTER_BYTES)] = 1024
    """Bits of a filter; all nodes of a network need the same."""
    filter_hashes: Annotated[int, Meta(ge=1, le=8)] = 1
    """Bits that a topic sets in a filter: with one, filters are most useful for the same privacy."""
    least_topics: Annotated[int, Meta(ge=8, le=256)] = 8
    """The least number of topics that a filter shows; dummies make up for missing ones."""
    epoch_days: Annotated[int, Meta(ge=1, le=365)] = 7
    """Days for which a filter is frozen."""
    release_delay: Annotated[float, Meta(ge=0.0, le=DAY)] = 60.0
    """Seconds from joining the first topic until a filter is made, so that it shows later topics too."""
    worth: Annotated[float, Meta(ge=0.0, le=1000.0)] = 3.0
    """Estimated common topics of two filters from which on an intersection is run."""
    intersect_pause: Annotated[float, Meta(ge=1.0, le=DAY)] = 600.0
    """Seconds between two intersections with the same peer."""
    intersect_inbound: Annotated[int, Meta(ge=1, le=1000)] = 30
    """Intersections that others may begin with us in an hour."""
    intersect_memory: Annotated[float, Meta(ge=60.0, le=30 * DAY)] = DAY
    """Seconds for which the outcome of an intersection is used."""
    fingers: Annotated[int, Meta(ge=0, le=64)] = 5
    """Peers kept for being unlike this node, so that clusters stay connected."""
    finger_rounds: Annotated[int, Meta(ge=1, le=10_000)] = 10
    """Rounds after which these unlike peers are replaced."""
    seek_hops: Annotated[int, Meta(ge=4, le=255)] = 32
    """The most nodes that a search for members of a topic visits."""
    seek_walkers: Annotated[int, Meta(ge=1, le=16)] = 2
    """Searches that are sent out at once."""
    seek_pause: Annotated[float, Meta(ge=0.1, le=3600.0)] = 30.0
    """Seconds between searches for the members of one topic, while too few are known."""
    spares: Annotated[int, Meta(ge=1, le=8)] = 2
    """Neighbours known on each side of a ring."""
    shortcuts: Annotated[int, Meta(ge=0, le=16)] = 2
    """Random members that a topic keeps links to, beside its neighbours on the ring."""
    fanout: Annotated[int, Meta(ge=2, le=16)] = 3
    """Members to which each node passes an event (Setty et al. 2012)."""
    ring_order: RingOrder = RingOrder.ID
    """Order of nodes on rings: by "id", with fewer links, or by "hash", where no node can choose its
    place."""
    request_timeout: Annotated[float, Meta(ge=0.1, le=60.0)] = 3.0
    """Seconds until an unanswered question counts as failed."""
    most_links: Annotated[int, Meta(ge=4, le=4096)] = 64
    """Links that gossip and rings may hold at once; neighbours beyond stay uncovered and are recorded."""
    base_trust: Annotated[float, Meta(ge=0.01, le=1.0)] = 0.1
    """Trust in a stranger."""
    transitivity: Annotated[float, Meta(ge=0.0, le=1.0)] = 0.9
    """Share of the trust in a peer that a peer named by it inherits."""
    trust_weight: Annotated[float, Meta(ge=0.0, le=2.0)] = 1.0
    """Weight of trust against similarity: at 0 similarity alone counts, at 2 trust alone."""
    overlap: Annotated[float, Meta(ge=0.0, le=7 * DAY)] = 600.0
    """Seconds that a topic which changes its overlay stays in the old one as well, once it has neighbours in
    the new one: time for the other nodes to change too."""
    descriptor_life: Annotated[float, Meta(ge=60.0, le=DAY)] = DAY
    """Seconds for which the descriptor of a node may be passed on."""
