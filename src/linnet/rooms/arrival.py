"""Events on their way into a room: how they came, and what became of them."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from linnet.core.ids import PeerId
from linnet.event.event import Event, Verified
from linnet.rooms.access.verdict import Refusal


class Verdict(Enum):
    """What the room's rules say of an event."""

    ACCEPTED = "accepted"
    SOFT_FAILED = "soft_failed"
    REJECTED = "rejected"
    EARLY = "early"
    """A control event that counts already, and waits for its place."""


class Arrival(Struct, frozen=True, gc=False):
    """An event that was checked, and how it came."""

    verified: Verified
    source: PeerId | None
    """None: it is our own, or from the store."""
    hops: int
    age_us: int

    @property
    def event(self) -> Event:
        """The event."""
        return self.verified.events[0]


class Placed(Struct, frozen=True, gc=False):
    """An event that has its place, or was refused one."""

    arrival: Arrival
    verdict: Verdict
    position: int | None
    """In the log; None if it is refused."""
    late: bool
    refusal: Refusal | None
    was_early: bool = False
    """Whether it counted, and was passed on, before it had its place."""
