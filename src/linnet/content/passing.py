"""An event as it passes: checked once, with its attributes read."""

from __future__ import annotations

from msgspec import Struct

from linnet.content.attribute_keys import base_of, check_part
from linnet.content.config import ContentConfig
from linnet.content.predicate import Attributes, Predicate, foreign_attributes
from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import EventId
from linnet.core.limits import CLEAR_BYTES
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.event.event import Event, Unverified
from linnet.identity.cards import Card

KIND = "content"
MOST_HOPS = 64
"""Links that a walk may cross: twice what a network of four thousand million nodes needs."""


class Passing(Struct, frozen=True, gc=False):
    """An event that was checked."""

    event: Event
    attributes: Attributes
    unit: Unverified
    card: Card

    @property
    def id(self) -> EventId:
        """The event's id."""
        return self.event.id


def check_asked(attribute: str, asked: Predicate, hops: int) -> None:
    """Check the way of an event or a subscription, as far as anybody can."""
    check_part(attribute)
    if base_of(attribute) not in asked.names:
        raise RemoteError(Reason.MALFORMED, "without the attribute that it goes by")
    if hops > MOST_HOPS:
        raise RemoteError(Reason.TOO_MANY, f"over more than {MOST_HOPS} links")


def check(unit: Unverified, card: Card, context: Context, config: ContentConfig, now: float) -> Passing:
    """Check what came; `RemoteError` if it is not what an event of content has to be."""
    context.card_check(card)
    if not card.not_before <= now <= card.not_after:
        raise InvalidEvent(Reason.CARD_EXPIRED, "the card of its device")
    event = context.verify(unit, card).events[-1]
    if abs(now - event.time / 1000) > config.taken_for:
        # For so long it would be known again: what is older may come from somebody who says it twice.
        raise InvalidEvent(Reason.STALE, "said too long ago, or by a clock that is far ahead")
    if event.seq is not None or event.kind != KIND or event.tail.clear is None:
        raise InvalidEvent(Reason.MALFORMED, "no event of content")
    try:
        text = event.tail.clear[:CLEAR_BYTES].decode()
    except UnicodeDecodeError as error:
        raise RemoteError(Reason.MALFORMED, "attributes that are no text") from error
    return Passing(event, foreign_attributes(text, config.attributes), unit, card)
