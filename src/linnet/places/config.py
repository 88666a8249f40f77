"""The parameters of places."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from linnet.core.ids import AuthorId
from linnet.core.limits import MIB


class PlacesConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """All of them have defaults that suit places of tens to thousands of guests."""

    fanout: Annotated[int, Meta(ge=1, le=64)] = 8
    """Guests that a node sends each fragment to; more are redirected to these."""
    upstreams: Annotated[int, Meta(ge=1, le=8)] = 2
    """Relays that a guest connects to, so that a bad one cannot cut it off."""
    gap_delay: Annotated[float, Meta(ge=0.0, le=60.0)] = 0.25
    """Seconds that a missing fragment may still come by another way before it is asked for."""
    replay_timeout: Annotated[float, Meta(ge=0.05, le=60.0)] = 2.0
    """Seconds until the next member is asked."""
    replay_tries: Annotated[int, Meta(ge=1, le=64)] = 8
    """Questions for one fragment before it is left until somebody else connects or a keep-alive comes."""
    replays_at_once: Annotated[int, Meta(ge=1, le=1024)] = 64
    """Fragments that are asked for at the same time."""
    replay_rate: Annotated[float, Meta(ge=1.0)] = 2000.0
    """Replays per second for one member; past this it is told that we are busy."""
    entry_timeout: Annotated[float, Meta(ge=0.1, le=600.0)] = 5.0
    """Seconds until another relay, or the host, is asked to let us in."""
    entries_waiting: Annotated[int, Meta(ge=1, le=100_000)] = 1024
    """Strangers at the door at once; more are turned away."""
    keepalive: Annotated[float, Meta(ge=1.0, le=86_400.0)] = 30.0
    """Seconds of silence after which the host sends a keep-alive, without which the loss of the last fragment
    would go unnoticed."""
    hash_every: Annotated[int, Meta(ge=1, le=1_000_000)] = 64
    """State messages between two that carry the hash of the whole state; every admission carries it too."""
    receipt_delay: Annotated[float, Meta(ge=0.0, le=60.0)] = 1.0
    """Seconds that receipts wait for others to travel with them."""
    state_bytes: Annotated[int, Meta(ge=1024, le=1 << 30)] = 16 * 1024 * 1024
    """Most bytes of names and values of a place's state."""
    value_bytes: Annotated[int, Meta(ge=1024, le=1 << 24)] = 1024 * 1024
    """Most bytes of one variable; it has to be whole before it counts."""
    modifier_bytes: Annotated[int, Meta(ge=1024, le=1 << 26)] = 4 * 1024 * 1024
    """Most bytes of all modifiers of one message."""
    talk_bytes: Annotated[int, Meta(ge=1024, le=1 << 30)] = 16 * 1024 * 1024
    """Most bytes of one request of a guest."""
    talks_open: Annotated[int, Meta(ge=1, le=10_000)] = 256
    """Requests of guests that may be incomplete at once."""
    watch_bytes: Annotated[int, Meta(ge=65_536, le=1 << 30)] = 4 * 1024 * 1024
    """Bytes of bodies in flight to one subscriber; the rest waits in the store."""
    yield_timeout: Annotated[float, Meta(ge=0.1, le=600.0)] = 3.0
    """Seconds that a co-host waits for the present voice before it opens a term itself."""


class KeeperConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How a relay keeps places for guests who are away."""

    allow: tuple[AuthorId, ...] | None = ()
    """People whose places are kept; None: everybody's."""
    max_places: int = 256
    place_bytes: int = 64 * MIB
    """Bytes of one place; past this the oldest go first."""
    total_bytes: int = 4096 * MIB
    """Bytes of all; a keeper that is full takes no more places."""
    lifetime: float = 30 * 86_400.0
    """Seconds that a fragment is kept."""
