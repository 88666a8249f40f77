"""The items that a subscription is handed: events, and notices between them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from msgspec import Struct

from linnet.core.ids import AuthorId, DeviceId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Damage
from linnet.event.event import Event


class Missed(Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """A range of a chain that nobody could provide; the subscription goes on behind it."""

    topic: TopicId
    author: AuthorId
    device: DeviceId
    first: int
    last: int
    reason: Reason
    claimed_by: int = 0
    """The peers by whose word alone these events exist: they may be invented. 0: a later event that the
    device signed, or the device itself, shows that they do."""


def missed_by_damage(damages: Iterable[Damage]) -> tuple[Missed, ...]:
    """Return what to tell a reader of our log about the damaged units that it would have received."""
    return tuple(
        Missed(each.topic, each.author, each.device, each.first, each.first + each.count - 1, Reason.DAMAGED)
        for each in damages
        if each.first is not None
    )


class Forked(Struct, frozen=True, gc=False):
    """A device signed two different events under one number: others may have read another one than you."""

    topic: TopicId
    author: AuthorId
    device: DeviceId
    number: int


class StorageTold(Struct, frozen=True, gc=False):
    """How far a storage node says that it keeps a chain."""

    node: PeerId
    last: int | None
    """None: it says that it has nothing of it."""


class StorageDiffers(Struct, frozen=True, gc=False):
    """Storage nodes differ about a chain: some hide events, have lost them, or claim what they cannot show.

    Everything that any of them has shown was handed over.
    """

    topic: TopicId
    author: AuthorId
    device: DeviceId
    last: int | None
    """The last event that any of them has shown."""
    told: tuple[StorageTold, ...]
    others: int = 0
    """Further chains about which they differ, and which are not told one by one."""


class CutOff(Struct, frozen=True, gc=False):
    """This node may be cut off from a stream: others claim to have events that nobody hands over."""

    topic: TopicId
    events: int
    """How many events they claim; 0: the node is cut off no longer."""
    claimants: int
    """How many peers claim them."""


class CaughtUp(Struct, frozen=True, gc=False):
    """All history was handed over; the following events are live."""

    begins_at: float | None
    """When the oldest kept event was stored; None if there is none."""
    evicted: bool
    """Whether there were older events, which retention or quota removed."""
    reason: Reason | None
    """Why there was no history: ``no_storage``, ``timeout``; None if there was."""


class Ended(Struct, frozen=True, gc=False):
    """The last item of a subscription."""

    reason: Reason | None
    """Why the subscription ended; None: it was asked to."""


class Overdue(Struct, frozen=True, gc=False):
    """A deadline of ours has passed, and the event is not known to have arrived at these people."""

    topic: TopicId
    event: EventId
    people: tuple[AuthorId, ...]


class RelayFaulty(Struct, frozen=True, gc=False):
    """A relay of the room is caught by its own signed statements."""

    topic: TopicId
    relay: PeerId
    reason: Reason
    """``withheld``: it hides an event that it had signed to have taken. ``equivocation``: it signed two
    histories. Both are proved to everybody. ``stale``: it shows us an older state than it signed. ``lost``:
    it went on from an older state; a restored copy of its store does that too."""
    event: EventId | None
    """The event that is withheld."""


class Inserted(Struct, frozen=True, gc=False):
    """The next event handed over arrived late and belongs before one that was handed over already."""

    topic: TopicId
    event: EventId
    before: EventId
    """The event that belongs behind it and was handed over first."""


class Unreadable(Struct, frozen=True, gc=False):
    """An event that is here but cannot be read, and why; once it can be read, it is handed over anew.

    With ``redacted`` its content was taken back for good.
    """

    event: Event
    """The event without its body."""
    reason: Reason
    by: AuthorId | None = None
    """The person who took it back."""


Item: TypeAlias = (
    Event
    | Unreadable
    | Inserted
    | Missed
    | Forked
    | StorageDiffers
    | CutOff
    | CaughtUp
    | Overdue
    | RelayFaulty
    | Ended
)
