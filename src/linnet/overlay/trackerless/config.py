"""Parameters of overlays without trackers. Every node of a network had better use the same."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

DAY = 86_400.0


class RingOrder(StrEnum):
    """Where a node stands on the rings of its topics."""

    ID = "id"
    """By its key, the same on all rings: neighbours recur, so there are fewer links."""
    HASH = "hash"
    """By a hash of topic, epoch and key: nobody can choose to stand beside a victim for long."""


class TrackerlessConfig(Struct, frozen=True):
    """How a node without trackers finds others, and what it tells of itself."""

    period: float = 10.0
    """Seconds between rounds of gossip, give or take a fifth."""
    hurried: int = 10
    """Rounds after the start that take a tenth of that: a node that is new had better be found."""
    view: int = 20
    """Peers in the sample of all nodes."""
    close: int = 20
    """Peers kept for being alike."""
    answer: int = 20
    """Descriptors in an answer to a pull."""
    gossip: int = 10
    """Descriptors in an answer about like peers, or of one ring."""
    introductions: int = 10
    """Strangers that may introduce themselves to us in a period."""
    sketch_rows: int = 4
    """Rows of counters of the sampler: the more, the less often a rare id is taken for a frequent one."""
    sketch_columns: int = 1024
    """Counters of the sampler; four for each invented key that it is to withstand."""
    quantile: float = 0.25
    """Of the counters that are not zero: ids that were seen as often are let in for certain."""
    halve_rounds: int = 100
    """Rounds after which all counters are halved: about two appearances of each id."""
    trusted_share: float = 0.25
    """Share of pulls that go to peers whom the user trusts, if there are any."""
    epsilon: float = 3.0
    """What a released filter tells of one topic, at most (differential privacy); for each epoch anew."""
    filter_bits: int = 1024
    """Bits of a filter; all nodes of a network need the same."""
    filter_hashes: int = 1
    """Bits of a filter that a topic sets: with one, most is learned for the same privacy."""
    least_topics: int = 8
    """Topics that a filter shows at least; what is lacking is made up."""
    epoch_days: int = 7
    """Days for which a filter is frozen."""
    release_delay: float = 60.0
    """Seconds after the first topic was joined until a filter is made, so that it shows the others too."""
    worth: float = 3.0
    """Topics that two filters must seem to have in common for an intersection to be run."""
    intersect_pause: float = 600.0
    """Seconds between two intersections with the same peer."""
    intersect_inbound: int = 30
    """Intersections that others may begin with us in an hour."""
    intersect_memory: float = DAY
    """Seconds for which the outcome of an intersection stands."""
    fingers: int = 5
    """Peers kept for being unlike, so that clusters stay bridged."""
    finger_rounds: int = 10
    """Rounds after which they are chosen anew."""
    seek_hops: int = 32
    """Nodes that a search for members of a topic visits at most."""
    seek_walkers: int = 2
    """Searches that are sent out at once."""
    seek_pause: float = 30.0
    """Seconds between searches for the members of one topic, while too few are known."""
    spares: int = 2
    """Neighbours known on each side of a ring."""
    shortcuts: int = 2
    """Members beside the ring's neighbours that a topic keeps links to."""
    fanout: int = 3
    """Members that an event is passed to by each (Setty et al. 2012)."""
    ring_order: RingOrder = RingOrder.ID
    """Where nodes stand on rings: by "id", with fewer links, or by "hash", where nobody chooses a place."""
    request_timeout: float = 3.0
    """Seconds until an unanswered question counts as failed."""
    most_links: int = 64
    """Links that gossip and rings may hold at once; what is beyond stays uncovered and is recorded."""
    base_trust: float = 0.1
    """Trust in a stranger."""
    transitivity: float = 0.9
    """What is left of trust in the one who names a peer."""
    trust_weight: float = 1.0
    """Between 0, where likeness alone counts, and 2, where trust alone does."""
    overlap: float = 600.0
    """Seconds that a topic which changes its overlay stays in the old one as well, once it has neighbours in
    the new one: time for the others to change over too."""
    descriptor_life: float = DAY
    """Seconds that what a node says of itself may be passed on."""
