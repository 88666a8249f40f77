"""What the use of relays tells its room, which acts on it once the running handler is done (`Room.settle`).

What comes of a notice stands where it was told, among what that handler asks for.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from linnet.core.ids import EventId, PeerId
from linnet.core.reasons import Reason
from linnet.event.event import Event, Unverified
from linnet.identity.cards import Card
from linnet.machine.outbox import Notice
from linnet.rooms.messages import RelayCursor, RoomReceipt, Tombstone


class Parcel(Struct, frozen=True, gc=False):
    """An event on its way to relays, with all that one needs to judge it."""

    event: Event
    unit: Unverified
    card: Card | None

    @property
    def bytes(self) -> int:
        """Bytes of the event, without those few around it."""
        return sum(map(len, self.unit.tails))


class Page(Notice, frozen=True, gc=False):
    """What a relay keeps: to be verified, authorised and taken in, then `RelayUse.confirm_page`."""

    relay: PeerId
    number: int
    """Tells pages of one relay apart."""
    units: tuple[Unverified, ...]
    cards: tuple[Card, ...]
    receipts: tuple[RoomReceipt, ...]
    tombstones: tuple[Tombstone, ...]
    more: bool
    """Whether the relay has more of what we have not seen."""


class GiveUnsent(Notice, frozen=True, gc=False):
    """Answer with `RelayUse.send_unsent`: the oldest of our events that no relay is known to
    keep, unless everyone has them."""

    relay: PeerId
    limit: int


class GiveMissing(Notice, frozen=True, gc=False):
    """Answer with `RelayUse.send_missing`: control events that a relay lacks to judge an event."""

    relay: PeerId
    event: EventId
    missing: tuple[EventId, ...]


class Behind(Notice, frozen=True, gc=False):
    """A relay's control DAG ends elsewhere: answer with `RelayUse.send_to`, control events beyond its heads.

    Heads that we do not know either tell only that it knows more than we do. No heads: it refused us and
    does not say what it knows; our own membership is enough, it asks for what it misses.
    """

    relay: PeerId
    heads: tuple[EventId, ...]


class Kept(Notice, frozen=True, gc=False):
    """A relay keeps an event, durably."""

    relay: PeerId
    event: EventId
    cursor: RelayCursor
    reason: Reason | None
    """What else there is to say: ``soft_failed``, ``duplicate``."""


class NotKept(Notice, frozen=True, gc=False):
    """A relay does not keep an event; it is not sent there again."""

    relay: PeerId
    event: EventId
    reason: Reason


class Forgot(Notice, frozen=True, gc=False):
    """A relay has lost what it had: that it kept something counts no longer."""

    relay: PeerId


RelayNotice: TypeAlias = Page | GiveUnsent | GiveMissing | Behind | Kept | NotKept | Forgot
