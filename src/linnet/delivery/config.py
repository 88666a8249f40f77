"""Parameters of delivery, and their sources."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from linnet.core.limits import BURST_EVENTS, GIB, MIB


class DeliveryConfig(Struct, frozen=True):
    """How events are passed on, waited for and requested again."""

    window_ranges: int = 10_000
    """Ranges that a duplicate window holds per chain (Juslenius 2021, section 4.2.2)."""
    burst_events: Annotated[int, Meta(ge=1, le=BURST_EVENTS)] = BURST_EVENTS
    """The most events of one loop turn that one signature covers; 1 signs each by itself."""
    suppress: Annotated[float, Meta(ge=0.0)] = 0.0
    """Seconds that a unit waits before it is passed on, so that neighbours that send it meanwhile can be
    skipped: fewer duplicates for more delay (section 5.3.1). 0 passes it on at once."""
    gap_grace: float = 0.5
    """Seconds in which a missing event may still arrive over another path before it is requested."""
    gap_timeout: float = 3.0
    """Seconds until a storage node that does not answer is skipped."""
    gap_tries: int = 10
    """Rounds of requests for a gap, each to all possible holders, before it is given up."""
    gap_backoff: float = 1.0
    """Seconds between rounds of requests, doubled each time."""
    gap_waits: bool = False
    """Whether rounds in which there was nobody to ask do not count, so that a node that is often offline
    loses nothing."""
    gaps_open: int = 10_000
    """The most gaps of one topic that are waited for; beyond that, the oldest are given up at once."""
    heads_period: float = 5.0
    """Seconds between announcements of chain heads to a neighbour, where there is news."""
    receipt_delay: float = 0.2
    """Seconds that a receipt waits to cover more events."""
    receipt_period: float = 2.0
    """Seconds between checks for events that storage nodes have not confirmed."""
    history_timeout: float = 5.0
    """Seconds until a storage node that does not send its history is skipped."""
    page_units: int = 256
    """The most units in one page of history or resends."""
    page_bytes: int = 512 * 1024
    """The most bytes in one page of history or resends."""
    window_items: int = 16_384
    """Items that a subscription may have in flight before the machine waits for the application."""
    buffer_items: int = 65_536
    """Items that may wait behind that window or behind a gap; beyond that, a live subscription ends."""
    max_chains: int = 65_536
    """The most chains of one topic that a node tracks; further devices are rejected."""
    publish_queue: int = 1024
    """Publishes that may wait while all links are congested."""
    own_retention: float = 7 * 86_400.0
    """Seconds that our own events are kept in a stream that we do not keep for others: as long as they may
    still have to be sent to somebody."""
    own_bytes: int = 256 * MIB
    """Bytes of our own events that are kept in such a stream."""
    evict_period: float = 10.0
    """Seconds between evictions of what retention and quota exclude."""
    stored_stream_bytes: Annotated[int, Meta(ge=1)] = 16 * GIB
    """Bytes that a stream may take which we keep for others and which has no quota: beyond that, its newest
    events are refused, and its publishers are told. The last quarter is not for the network that has stored
    most."""
    stored_bytes: Annotated[int, Meta(ge=1)] = 64 * GIB
    """Bytes that all streams may take together that we keep for others; beyond that, as above."""
    disk_reserve: Annotated[int, Meta(ge=0)] = 256 * MIB
    """Bytes of the disk that are left free for this node itself: with less, nothing is stored for others."""
    linger: float = 60.0
    """Seconds that a node stays in a stream that it only published to."""
    lazy_peers: Annotated[int, Meta(ge=0, le=16)] = 6
    """Members of a stream, beside the neighbours, with whom a node compares how far the chains go."""
    lazy_links: Annotated[int, Meta(ge=0)] = 128
    """Links that a node keeps to such members, in all streams together."""
    replay_slack: int = 1024
    """Units that a neighbour may send beyond the number that exist, before it counts as replaying."""
    epoch_seconds: Annotated[float, Meta(ge=1.0)] = 86_400.0
    """Seconds that the key of a sealed stream of ours lasts; the next message after that gets a new one."""
    epoch_keys: Annotated[int, Meta(ge=0, le=1000)] = 3
    """Keys of a sealed stream that are kept beside the present one, for late messages."""
    epoch_key_seconds: Annotated[float, Meta(ge=0.0)] = 7 * 86_400.0
    """The most seconds that they are kept after a later key came."""


class BarrierConfig(Struct, frozen=True):
    """How long and for how many events the causal barriers of one topic wait, and how they ask."""

    delay: float = 0.5
    """Seconds in which a missing dependency may still arrive by itself before it is requested."""
    timeout: float = 2.0
    """Seconds until a request goes to the next source."""
    tries: int = 8
    """Requests that may go unanswered before an event is left to synchronisation."""
    events: int = 20_000
    """Events that may wait for their dependencies."""
    bytes: int = 64 * MIB
    """Bytes of events that may wait."""
    missing: int = 50_000
    """The most missing events that are requested at once."""
    ids: int = 256
    """Ids in one request: about as many events as a page holds."""
