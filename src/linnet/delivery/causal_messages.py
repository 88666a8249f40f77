"""What nodes tell each other to get a topic's causal graph whole (tags 52 to 56).

Shared by every way to subscribe whose events name their dependencies: single events by id, what lies
beyond some heads, and set reconciliation.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from linnet.core.ids import Count, WireEventId, WireTopicId
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.delivery.messages import Cards, Units

IDS_PER_MESSAGE = 1024
HEADS_PER_MESSAGE = 256
RANGES_PER_MESSAGE = 512
IDS_PER_RANGE = 256

Ids = Annotated[tuple[WireEventId, ...], Meta(max_length=IDS_PER_MESSAGE)]
TopicHeads = Annotated[tuple[WireEventId, ...], Meta(max_length=HEADS_PER_MESSAGE)]
Digest = Annotated[bytes, Meta(min_length=32, max_length=32)]


class Want(Message, frozen=True, tag=52):
    """Please send these events."""

    topic: WireTopicId
    request: Count
    ids: Ids


class Given(Message, frozen=True, tag=53):
    """What was asked for: events in causal order, and the ids that are not held, with the reason."""

    topic: WireTopicId
    request: Count
    units: Units
    cards: Cards
    unknown: Ids
    reason: Reason | None
    """``not_held`` or ``retention`` for `unknown`; ``too_large`` if the rest is to be asked for again."""


class Beyond(Message, frozen=True, tag=54):
    """Please send what you know that lies beyond these heads (the heads walk)."""

    topic: WireTopicId
    request: Count
    heads: TopicHeads


class Further(Message, frozen=True, tag=55):
    """A page of what lies beyond, in causal order. While there is more, it is asked for from new heads."""

    topic: WireTopicId
    request: Count
    units: Units
    cards: Cards
    more: bool
    unknown: TopicHeads
    """Heads that were asked from and are not known here: the walk is no use for them."""


class Bound(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A place in the order of (height, id); the end of everything is the largest of both."""

    height: Count
    id: WireEventId


class Range(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """All that the sender has from the end of the range before up to (not including) `upto`."""

    upto: Bound
    fingerprint: Digest | None
    """Of the set. None: the ids are listed instead."""
    ids: Annotated[tuple[WireEventId, ...], Meta(max_length=IDS_PER_RANGE)]
    skip: bool
    """No answer is due: both have the same, or this ends the range and `ids` are what the other lacks."""


class Reconcile(Message, frozen=True, tag=56):
    """One step of range-based set reconciliation over a topic's events.

    If the last range does not reach to the end of everything, there is more to say; if there is none, the
    other is let go on.
    """

    topic: WireTopicId
    session: Count
    ranges: Annotated[tuple[Range, ...], Meta(max_length=RANGES_PER_MESSAGE)]


CausalMessage: TypeAlias = Want | Given | Beyond | Further | Reconcile
