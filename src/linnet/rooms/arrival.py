"""Events on their way into a room: how they came, and what became of them."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.event.event import Event, Unverified, Verified
from linnet.identity.cards import check_dates
from linnet.rooms.access.verdict import Refusal
from linnet.rooms.content import CREATE


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

    @property
    def size(self) -> int:
        """About the bytes that it takes."""
        return sum(map(len, self.verified.unit.tails))


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
    again: bool = False
    """Whether it had its place before, and the log was damaged since."""


def checked(unit: Unverified, room: TopicId, context: Context) -> Verified:
    """A unit as an event of this room whose signature holds; `InvalidEvent` says what is wrong."""
    if len(unit.tails) != 1 or unit.seq is None:
        raise InvalidEvent(Reason.MALFORMED, "a room's events come one by one, in chains")
    card = context.cards.find(unit.author, unit.device)
    if card is None:
        raise InvalidEvent(Reason.UNKNOWN_DEVICE, "no card came with the device's first event")
    verified = context.verify(unit, card)
    event = verified.events[0]
    try:
        # A renewed card begins later than the device's history.
        check_dates(card, max(event.time / 1000, card.not_before))
    except RemoteError as error:
        raise InvalidEvent(error.reason, error.detail) from error
    if event.kind == CREATE:
        if bytes(event.id) != room:
            raise InvalidEvent(Reason.NOT_ALLOWED, "a second create event")
    elif event.topic != room:
        raise InvalidEvent(Reason.UNKNOWN_ROOM, "an event of another room")
    elif event.tail.deps is None or event.tail.control is None or event.tail.height is None:
        raise InvalidEvent(Reason.MALFORMED, "an event without dependencies, control heads or height")
    return verified
