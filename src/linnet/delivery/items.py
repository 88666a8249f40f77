"""What a subscription is handed: events, and what there is to say between them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from msgspec import Struct

from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Damage
from linnet.event.event import Event


class Missed(Struct, frozen=True, gc=False):
    """A range of a chain that could not be had; the subscription goes on behind it."""

    topic: TopicId
    author: AuthorId
    device: DeviceId
    first: int
    last: int
    reason: Reason


def missed_by_damage(damages: Iterable[Damage]) -> tuple[Missed, ...]:
    """What a reader of our log is told of units that it would have had, were they not damaged."""
    return tuple(
        Missed(each.topic, each.author, each.device, each.first, each.first + each.count - 1, Reason.DAMAGED)
        for each in damages
        if each.first is not None
    )


class CaughtUp(Struct, frozen=True, gc=False):
    """History was handed over; what follows is live."""

    begins_at: float | None
    """When the oldest kept event was stored; None if there was none."""
    evicted: bool
    """Whether there had been older ones, which retention or quota removed."""
    reason: Reason | None
    """Why there was no history, if so: ``no_storage``, ``timeout``."""


class Ended(Struct, frozen=True, gc=False):
    """Nothing more comes on this subscription."""

    reason: Reason | None
    """None: it was asked to end."""


class Overdue(Struct, frozen=True, gc=False):
    """A deadline of ours has passed: at whom an event is not known to have arrived."""

    topic: TopicId
    event: EventId
    people: tuple[AuthorId, ...]


class Inserted(Struct, frozen=True, gc=False):
    """The event that is handed over next came later than what belongs behind it."""

    topic: TopicId
    event: EventId
    before: EventId
    """Which belongs behind it, and came before."""


class Unreadable(Struct, frozen=True, gc=False):
    """An event that is there and cannot be read here, and why; once it can be, it is handed over anew.

    With ``redacted`` it was taken back, for good.
    """

    event: Event
    """Without its body."""
    reason: Reason
    by: AuthorId | None = None
    """Who took it back."""


Item: TypeAlias = Event | Unreadable | Inserted | Missed | CaughtUp | Overdue | Ended
