"""Parameters of delivery, with where they come from."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from linnet.core.limits import BURST_EVENTS, MIB


class DeliveryConfig(Struct, frozen=True):
    """How events are passed on, waited for and asked for again."""

    window_ranges: int = 10_000
    """Ranges that a duplicate window holds per chain (Juslenius 2021, section 4.2.2)."""
    burst_events: Annotated[int, Meta(ge=1, le=BURST_EVENTS)] = BURST_EVENTS
    """Events of one loop turn that one signature covers at most; 1 signs each by itself."""
    suppress: Annotated[float, Meta(ge=0.0)] = 0.0
    """Seconds that a unit waits before it is passed on, so that neighbours which send it meanwhile
    can be skipped: fewer duplicates for more delay (section 5.3.1). 0 passes on at once."""
    gap_grace: float = 0.5
    """Seconds that a missing event may still come over another path before it is asked for."""
    gap_timeout: float = 3.0
    """Seconds until a storage node that does not answer is passed over."""
    gap_tries: int = 10
    """Rounds of requests for a gap, each to all who may hold it, before it is given up."""
    gap_backoff: float = 1.0
    """Seconds between rounds of requests, doubled each time."""
    gap_waits: bool = False
    """Whether rounds in which nobody could be asked do not count: who is often away loses nothing by it."""
    gaps_open: int = 10_000
    """Gaps of one topic that are waited for at once; more are given up at once, the oldest first."""
    heads_period: float = 5.0
    """Seconds between announcements of chain heads to a neighbour, where there is news."""
    receipt_delay: float = 0.2
    """Seconds that a receipt waits for more to be said in it."""
    receipt_period: float = 2.0
    """Seconds between looks for publications that storage nodes have not confirmed."""
    history_timeout: float = 5.0
    """Seconds until a storage node that does not send its history is passed over."""
    page_units: int = 256
    """Most units that one page of history or resends holds."""
    page_bytes: int = 512 * 1024
    """Most bytes that one page of history or resends holds."""
    window_items: int = 16_384
    """Items that a subscription may have in flight before the machine waits for the application."""
    buffer_items: int = 65_536
    """Items that may wait behind that window or behind a gap; past this a live subscription ends."""
    max_chains: int = 65_536
    """Chains of one topic that a node keeps apart; more devices are rejected."""
    publish_queue: int = 1024
    """Publishes that may wait while all links are congested."""
    own_retention: float = 7 * 86_400.0
    """Seconds that our own publications are kept in a stream that we do not keep for others: as long
    as somebody may still have to be sent them."""
    own_bytes: int = 256 * MIB
    """Bytes of our own publications in such a stream."""
    evict_period: float = 10.0
    """Seconds between looks for what retention and quota want removed."""
    linger: float = 60.0
    """Seconds that a node stays in a stream that it only published to."""
    replay_slack: int = 1024
    """Units that one neighbour may send beyond those there are, before it counts as replaying."""
    epoch_seconds: Annotated[float, Meta(ge=1.0)] = 86_400.0
    """Seconds that the key of a sealed stream of ours lasts; the next message after that has a new one."""
    epoch_keys: Annotated[int, Meta(ge=0, le=1000)] = 3
    """Keys of a sealed stream that are kept beside the present one, for what comes late."""
    epoch_key_seconds: Annotated[float, Meta(ge=0.0)] = 7 * 86_400.0
    """Seconds that they are kept at most, after a later one came."""


class BarrierConfig(Struct, frozen=True):
    """How long and for how much the causal barriers of one topic wait, and how they ask."""

    delay: float = 0.5
    """Seconds that a missing dependency may still come by itself before it is asked for."""
    timeout: float = 2.0
    """Seconds until a question is asked of the next source."""
    tries: int = 8
    """Questions that may go unanswered before an event is left to synchronisation."""
    events: int = 20_000
    """Events that may wait for their dependencies."""
    bytes: int = 64 * MIB
    """Bytes of events that may wait."""
    missing: int = 50_000
    """Events that are missing and asked for at once."""
    ids: int = 256
    """Ids in one question: about as many events as a page holds."""
