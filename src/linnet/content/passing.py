"""An event on its way: signed here or checked once, with its attributes read."""

from __future__ import annotations

from msgspec import Struct

from linnet.content.attribute_keys import base_of, check_part
from linnet.content.config import ContentConfig
from linnet.content.predicate import Attributes, Predicate, foreign_attributes
from linnet.core.errors import InvalidEvent, Refused, RemoteError
from linnet.core.ids import EventId, TopicId
from linnet.core.limits import BODY_BYTES, CLEAR_BYTES
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.event.event import Event, Spot, Tail, Unverified
from linnet.event.signing import sign_unit
from linnet.identity.cards import Card

KIND = "content"
MOST_HOPS = 64
"""Links that a walk may cross: twice as many as a network of four thousand million nodes needs."""


class Passing(Struct, frozen=True, gc=False):
    """An event whose signature was checked."""

    event: Event
    attributes: Attributes
    unit: Unverified
    card: Card

    @property
    def id(self) -> EventId:
        """The event's id."""
        return self.event.id


class EventSigner:
    """Makes events of the application's publications; no two of them are the same."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._last_time = 0

    def sign(self, topic: TopicId, attributes: Attributes, body: bytes, now: float) -> Passing:
        """Sign the application's publication under a topic as an event; `Refused` if it is too large."""
        clear = attributes.text.encode()
        if len(body) > BODY_BYTES or len(clear) > CLEAR_BYTES:
            detail = f"a body has at most {BODY_BYTES} bytes, attributes {CLEAR_BYTES}"
            raise Refused(Reason.TOO_LARGE, detail)
        # Pushed on where the clock stood still.
        self._last_time = max(int(now * 1000), self._last_time + 1)
        tail = Tail(None, None, None, None, KIND, None, self._last_time, clear, body)
        context = self._context
        signed = sign_unit(context.key, Spot(topic, context.author, context.device, None, None), (tail,))
        return Passing(signed.events[-1], attributes, signed.unit, context.card)


def check_asked(attribute: str, asked: Predicate, hops: int) -> None:
    """Check the attribute and hops of an event or a subscription; `RemoteError` if they cannot be right."""
    check_part(attribute)
    if base_of(attribute) not in asked.names:
        raise RemoteError(Reason.MALFORMED, "without the attribute that it goes by")
    if hops > MOST_HOPS:
        raise RemoteError(Reason.TOO_MANY, f"over more than {MOST_HOPS} links")


def check(unit: Unverified, card: Card, context: Context, config: ContentConfig, now: float) -> Passing:
    """Check an event from a peer; `RemoteError` if it is no valid event of content."""
    context.card_check(card)
    if not card.not_before <= now <= card.not_after:
        raise InvalidEvent(Reason.CARD_EXPIRED, "the card of its device")
    event = context.doubt(context.verify(unit, card), now).events[-1]
    if abs(now - event.time / 1000) > config.taken_for:
        # For so long it would be recognised: an older one may be a replay.
        raise InvalidEvent(Reason.STALE, "said too long ago, or by a clock that is far ahead")
    if event.seq is not None or event.kind != KIND or event.tail.clear is None:
        raise InvalidEvent(Reason.MALFORMED, "no event of content")
    try:
        text = event.tail.clear[:CLEAR_BYTES].decode()
    except UnicodeDecodeError as error:
        raise RemoteError(Reason.MALFORMED, "attributes that are no text") from error
    return Passing(event, foreign_attributes(text, config.attributes), unit, card)
