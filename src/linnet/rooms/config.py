"""Parameters of rooms and relays, with their sources."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from linnet.core.ids import AuthorId
from linnet.core.limits import MIB
from linnet.rooms.stamps import Bits


class RelayChoice(StrEnum):
    """How a member chooses among the relays of a room."""

    RANDOM = "random"
    """Drawn by the seed: the same seed, the same relay (Schichtholz 2024, section 5.4)."""
    NEAREST = "nearest"
    """The one with the lowest round-trip time."""
    SPREAD = "spread"
    """Another one for each room and turn, so that none sees everything and load is even."""


class RelayPolicy(StrEnum):
    """The rule by which a relay accepts rooms."""

    OPEN = "open"
    """Rooms of anyone, as long as there is space."""
    ALLOW = "allow"
    """Only rooms of the listed people."""


class RelayLimits(Struct, frozen=True):
    """The limits of what a relay accepts and stores."""

    policy: RelayPolicy = RelayPolicy.ALLOW
    """Whose rooms this relay takes: those of the people listed, or anyone's."""
    max_rooms: Annotated[int, Meta(ge=1)] = 1000
    """Rooms that this relay serves at most."""
    room_bytes: int = 64 * MIB
    """Bytes of events kept for one room; past this the oldest go first."""
    total_bytes: int = 4096 * MIB
    """Bytes of events kept in all; a relay that is full takes no more rooms."""
    sender_bytes: int = 16 * MIB
    """Bytes of events of one author kept in one room."""
    chunk_bytes: int = 256 * MIB
    """Bytes of attachments kept for one room."""
    max_lifetime: float = 30 * 86_400.0
    """Seconds that an event is kept where the room's state says nothing."""
    soft_failed: int = 5
    """Control events that fail only against the current state, kept per author and day: a banned person
    can make valid events on old branches for ever (docs/adr/0011)."""
    park_events: int = 1000
    """Events of one room that may wait for control events that are missing."""
    fetch_tries: int = 3
    """Rounds of requests for a missing control event, before the events that need it are refused."""
    fetch_timeout: float = 2.0
    """Seconds until a missing control event is requested from the next peer."""
    tombstones: int = 10_000
    """Deleted events of one room that are still remembered by id."""
    receipts: int = 4096
    """Devices of one room whose latest receipt is kept."""
    group_bytes: int = 16 * MIB
    """Bytes of operations on the keys of one room, which the room's retention does not cover, at most half
    of them of one author; past this the oldest go first."""
    group_least: Annotated[float, Meta(ge=0.0)] = 7 * 86_400.0
    """Seconds that an operation on keys is kept even if every device has read it: a device that crashed asks
    again."""
    group_lifetime: float = 30 * 86_400.0
    """Seconds that an operation on keys waits for devices that have not read it."""
    group_pending: Annotated[int, Meta(ge=1)] = 1000
    """Operations on keys that wait for one device; past this the oldest go, and it has to be added to the
    keys anew."""


class RelayConfig(RelayLimits, frozen=True):
    """The relay role."""

    allow: tuple[AuthorId, ...] = ()
    """People who may ask this relay to serve their rooms; where it is open, those who need no stamp."""
    stamp_bits: Bits = 0
    """The stamp that an open relay asks of others for a new room; 0: none."""


class RoomsConfig(Struct, frozen=True):
    """How rooms are kept, passed on and caught up with."""

    mesh: Annotated[int, Meta(ge=1, le=256)] = 32
    """Online devices up to which a room is a full mesh. A larger room uses a tracker's graph, or links to
    this many devices at random."""
    recovery_delay: float = 0.5
    """Seconds that a missing dependency may still come by itself before it is asked for."""
    recovery_timeout: float = 2.0
    """Seconds until a missing dependency is requested from the next source."""
    recovery_tries: int = 8
    """Requests for a missing dependency before it is left to synchronisation."""
    waiting_events: int = 20_000
    """Events of one room that may wait for their dependencies; past this the newest is dropped
    and fetched later."""
    waiting_bytes: int = 64 * MIB
    """Bytes of events of one room that may wait for their dependencies."""
    page_events: Annotated[int, Meta(ge=1, le=1024)] = 256
    """Events in one page of any answer."""
    page_bytes: int = 512 * 1024
    """Bytes of events in one page of any answer."""
    sync_timeout: float = 5.0
    """Seconds until a synchronisation that makes no progress turns to another peer."""
    announce_delay: float = 1.0
    """Seconds of quiet after which changed heads are told to neighbours."""
    announce_period: float = 30.0
    """Seconds between comparisons of heads with one neighbour, where nothing else happened."""
    leave_patience: Annotated[float, Meta(gt=0.0)] = 30 * 86_400.0
    """Seconds for which this node tries to tell another peer that we left a room; then it gives up. The
    default is as long as relays keep an event and keys wait for a device."""
    receipts: bool = True
    """Whether others may learn that an event arrived here."""
    receipt_delay: float = 0.5
    """Seconds that a receipt waits for more events to cover, or for an event of ours that replaces it."""
    ledger_events: Annotated[int, Meta(ge=1)] = 10_000
    """Events of our own in one room whose fates are remembered; past this the oldest are forgotten."""
    relay_choice: RelayChoice = RelayChoice.RANDOM
    """How to choose among the relays of a room."""
    relay_seed: Annotated[int, Meta(ge=0)] | None = None
    """Seed of the choice; unset: drawn at the first start and stored."""
    relays_at_once: Annotated[int, Meta(ge=0, le=8)] = 1
    """Relays used at the same time for one room; 0 uses none."""
    relay_rotate: Annotated[float, Meta(ge=0.0)] = 0.0
    """Seconds until another relay is chosen; 0: only when one fails."""
    relay_timeout: float = 5.0
    """Seconds until a relay that does not answer is passed over."""
    stamp_bits: Bits = 24
    """The most expensive stamp that this node makes for an open relay, in bits: each bit doubles the work. 21
    take about two seconds of one core, 24 about 17. A relay that asks more is not used."""
    relay_retry: float = 15.0
    """Seconds until a relay that failed is tried again; doubled each time that it refuses us once more, up to
    sixteen times as long."""
    future_ms: int = 300_000
    """Milliseconds that an event's time may be ahead of our clock; past this the trace says so. The event is
    shown all the same: a wrong clock, ours or the author's, silences nobody."""
    max_control: int = 50_000
    """The most control events of one room."""
    rejected: int = 10_000
    """Ids of refused events of one room that are remembered, so that each is judged only once."""
    flood_soft: int = 64
    """Soft-failed events of one author that are kept while no other event refers to them."""
    chunk_bytes: int = 1024 * MIB
    """Bytes of attachments kept for one room."""
    chunk_timeout: float = 5.0
    """Seconds until a piece of an attachment is requested from another source."""
    attachment_bytes: int = 2048 * MIB
    """Bytes of the largest attachment. Not applied yet: 2 GiB is the limit, whatever is set here."""
    ack_delay: float = 1.0
    """Encrypted rooms: seconds that acknowledgements of key changes wait for more of them."""
    turn_step: float = 2.0
    """Encrypted rooms: seconds after which the next member does a task that the one before has not done."""
    key_update: float = 7 * 86_400.0
    """Encrypted rooms: seconds after which this device gives the room new keys, so that a theft ends."""
    newcomer_wait: float = 2.0
    """Encrypted rooms: seconds that a message waits for the keys of people who just joined."""
    key_patience: float = 20.0
    """Encrypted rooms: seconds that a message waits for this device to be added to the keys."""
    key_absence: float = 30 * 86_400.0
    """Encrypted rooms: seconds after which a device that takes in no key change is removed from the keys,
    to be added anew when it comes back."""
    key_pending: int = 1_000
    """Encrypted rooms: key changes that a device may lack; with more it is removed likewise."""


REFUSALS = 5
"""Refusals of a relay in a row after which the pause before it is asked again grows no more."""


def pause_after(refusals: int, relay_retry: float) -> float:
    """Return the seconds until a relay is asked again that refused so often in a row; 0: it was away."""
    return relay_retry * 2.0 ** max(0, min(refusals, REFUSALS) - 1)
