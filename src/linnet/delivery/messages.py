"""What nodes tell each other to get every event to everyone (tags 30 to 49)."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from linnet.core.ids import (
    Count,
    TopicId,
    WireAuthorId,
    WireDeviceId,
    WirePeerId,
    WireSignature,
    WireTopicId,
)
from linnet.core.limits import CHAINS_PER_MESSAGE
from linnet.core.messages import Message, TopicMessage
from linnet.core.reasons import Reason
from linnet.event.event import Unverified
from linnet.identity.cards import Card, Revocation

Units = Annotated[tuple[Unverified, ...], Meta(max_length=1024)]
Cards = Annotated[tuple[Card, ...], Meta(max_length=1024)]
MAX_HOPS = 65_535


class Data(TopicMessage, frozen=True, tag=30):
    """A unit on its way through an overlay. What changes from hop to hop is here, never in it."""

    unit: Unverified
    hops: Annotated[int, Meta(ge=0, le=MAX_HOPS)]
    """Links that it has crossed, this one included."""
    age_us: Count
    """Microseconds from its publication to when it was sent here, by the clocks on its way."""
    sent_us: Count
    """The sender's clock, in microseconds of Unix time."""
    card: Card | None
    """The card of its device, the first time that the device is seen on this link."""

    @property
    def topic(self) -> TopicId:
        """See `TopicMessage.topic`."""
        return self.unit.topic


class ChainPlace(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """From where and how far the sender of this knows one chain."""

    author: WireAuthorId
    device: WireDeviceId
    first: Count
    last: Count
    held: bool
    """Whether it can resend what is between them."""


Places = Annotated[tuple[ChainPlace, ...], Meta(max_length=CHAINS_PER_MESSAGE)]


class Heads(Message, frozen=True, tag=31):
    """How far I know the chains of a topic.

    Prev references cannot show the loss of a chain's last event; this does.
    """

    topic: WireTopicId
    chains: Places
    waited_ms: Count | None = None
    """For how long the sender has read this topic: it asks what was said in that time. 0: it does not ask;
    None: it is of version 0.1.0, and neither asks nor answers."""
    due: Annotated[tuple[Count, ...], Meta(max_length=CHAINS_PER_MESSAGE)] | None = None
    """The answer: for each of the chains the first number that was said in that time. None: no answer."""


class Resend(Message, frozen=True, tag=32):
    """Please send this range of a chain again."""

    topic: WireTopicId
    author: WireAuthorId
    device: WireDeviceId
    first: Count
    last: Count


class Resent(Message, frozen=True, tag=33):
    """What I hold of a range that was asked for; the last page says so."""

    topic: WireTopicId
    author: WireAuthorId
    device: WireDeviceId
    first: Count
    last: Count
    """The range as it was asked for."""
    units: Units
    cards: Cards
    done: bool
    reason: Reason | None
    """Why some of the range is not among the pages: ``not_held``, ``retention``, ``quota``."""
    ages_ms: Annotated[tuple[Count, ...], Meta(max_length=1024)] = ()
    """How long ago each unit was said, as far as the sender knows; empty if it does not tell."""


class History(Message, frozen=True, tag=34):
    """Please send what you keep of a topic, past a position of your log."""

    topic: WireTopicId
    request: Count
    after: Count | None
    """None to begin at `since`."""
    since_ms: Count
    """Nothing that was stored before this; 0 for all."""


class HistoryPage(Message, frozen=True, tag=35):
    """A page of what is kept. The asker asks again past `after` until `done`."""

    topic: WireTopicId
    request: Count
    units: Units
    cards: Cards
    after: Count
    done: bool
    begins_ms: Count | None
    """When the oldest unit that is kept was stored; None if nothing is."""
    evicted: bool
    """Whether older ones were evicted, so that this is not the beginning."""
    reason: Reason | None
    """Why there is no history here."""


class Watch(Message, frozen=True, tag=36):
    """Please tell me of receipts in this topic."""

    topic: WireTopicId
    on: bool


class Receipt(Message, frozen=True, tag=37):
    """A signed statement: my device has these chains up to here, without a gap. The latest one counts."""

    topic: WireTopicId
    receiver: WirePeerId
    storage: bool
    """Whether it keeps them for others, durably."""
    at_ms: Count
    chains: Places
    sig: WireSignature


class Revoked(Message, frozen=True, tag=38):
    """A device that spoke in this topic is revoked; passed on to neighbours that may not know."""

    topic: WireTopicId
    revocation: Revocation


DeliveryMessage: TypeAlias = (
    Data | Heads | Resend | Resent | History | HistoryPage | Watch | Receipt | Revoked
)
