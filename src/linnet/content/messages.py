"""What nodes tell each other about content (tags 130 to 149)."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from linnet.content.predicates import NAME_CHARS, TEXT_CHARS
from linnet.core.ids import Contact, Count, WireEventId
from linnet.core.reasons import Reason
from linnet.event.event import Unverified
from linnet.identity.cards import Card

Attribute = Annotated[str, Meta(min_length=1, max_length=NAME_CHARS)]
Text = Annotated[str, Meta(min_length=1, max_length=TEXT_CHARS)]
REPLACED = 256
"""Predicates in one `Replace` at most."""
MOST_PATIENCE = 3_600_000
Hops = Annotated[int, Meta(ge=0, le=255)]


class Subscribe(Struct, frozen=True, array_like=True, tag=130, gc=False):
    """Send me what this predicate accepts; it goes on towards the rendezvous of the attribute."""

    number: Count
    attribute: Attribute
    predicate: Text
    hops: Hops
    moved: bool = False
    """Whether it was told to another before, so that what went by lately may have been missed."""


class Subscribed(Struct, frozen=True, array_like=True, tag=131, gc=False):
    """It stands all the way to the rendezvous; or why not."""

    number: Count
    reason: Reason | None


class Replace(Struct, frozen=True, array_like=True, tag=132, gc=False):
    """Of all that I asked for under this attribute, only this still counts."""

    attribute: Attribute
    predicates: Annotated[tuple[Text, ...], Meta(max_length=REPLACED)]


class Publish(Struct, frozen=True, array_like=True, tag=133, gc=False):
    """An event on its way up, to the rendezvous of one of its attributes."""

    attribute: Attribute
    unit: Unverified
    card: Card
    hops: Hops


class Taken(Struct, frozen=True, array_like=True, tag=134, gc=False):
    """The rendezvous has it, or why it did not get there; goes back the way that the event came."""

    event: WireEventId
    attribute: Attribute
    reason: Reason | None


class Notice(Struct, frozen=True, array_like=True, tag=135, gc=False):
    """An event on its way down, along filters."""

    attribute: Attribute
    unit: Unverified
    card: Card
    hops: Hops
    patience: Annotated[int, Meta(ge=0, le=MOST_PATIENCE)] = 60_000
    """Milliseconds for which the sender waits for an answer: those below have to give up earlier."""


class Reached(Struct, frozen=True, array_like=True, tag=136, gc=False):
    """All below me have it: at so many nodes it was handed over, so many branches did not answer."""

    event: WireEventId
    attribute: Attribute
    delivered: Count
    missed: Count


class Settled(Struct, frozen=True, array_like=True, tag=137, gc=False):
    """The same of everything below the rendezvous; goes back to the publisher."""

    event: WireEventId
    attribute: Attribute
    delivered: Count
    missed: Count


class Claim(Struct, frozen=True, array_like=True, tag=138, gc=False):
    """I act as rendezvous of this attribute: a lookup found nobody closer."""

    attribute: Attribute


class Closer(Struct, frozen=True, array_like=True, tag=139, gc=False):
    """This one is closer to the attribute that you claim."""

    attribute: Attribute
    contact: Contact


ContentMessage: TypeAlias = (
    Subscribe | Subscribed | Replace | Publish | Taken | Notice | Reached | Settled | Claim | Closer
)
