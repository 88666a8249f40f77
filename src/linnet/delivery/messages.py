"""The messages between nodes that bring every event to every subscriber.

Tags 30 to 49 serve chains. Tags 52 to 56 serve streams, rooms and places alike, as far as events name their
dependencies: requests for events by id, the heads walk, and set reconciliation.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from linnet.core.ids import (
    Count,
    TopicId,
    WireAuthorId,
    WireDeviceId,
    WireEventId,
    WirePeerId,
    WireSignature,
    WireTopicId,
)
from linnet.core.limits import CHAINS_PER_MESSAGE
from linnet.core.messages import BulkMessage, Message, TopicMessage
from linnet.core.reasons import Reason
from linnet.event.event import Unverified
from linnet.identity.cards import Card, Revocation

Units = Annotated[tuple[Unverified, ...], Meta(max_length=1024)]
Cards = Annotated[tuple[Card, ...], Meta(max_length=1024)]
MAX_HOPS = 65_535


class Data(TopicMessage, BulkMessage, frozen=True, tag=30):
    """A unit on its way through an overlay. Fields that change at each hop are here, never in the unit."""

    unit: Unverified
    hops: Annotated[int, Meta(ge=0, le=MAX_HOPS)]
    """Links that it has crossed, including this one."""
    age_us: Count
    """Microseconds from its publication until it was sent here, by the clocks on its way."""
    sent_us: Count
    """The sender's clock, in microseconds of Unix time."""
    card: Card | None
    """The card of its device, the first time that the device is seen on this link."""

    @property
    def topic(self) -> TopicId:
        """See `TopicMessage.topic`."""
        return self.unit.topic


class ChainPlace(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The range of one chain that the sender knows."""

    author: WireAuthorId
    device: WireDeviceId
    first: Count
    last: Count
    held: bool
    """Whether it can resend that range."""


Places = Annotated[tuple[ChainPlace, ...], Meta(max_length=CHAINS_PER_MESSAGE)]


_CHAINS_AT_ONE_COST = 64
"""Chains that a peer may claim at the cost of one message. With fewer, a node that greets in a thousand
topics at once would be cut; with more, a peer that does nothing else could keep a node busy."""


class Heads(Message, frozen=True, tag=31):
    """How far the sender knows the chains of a topic.

    Prev references cannot show the loss of a chain's last event; this does.
    """

    topic: WireTopicId
    chains: Places
    waited_ms: Count | None = None
    """For how long the sender has read this topic, in milliseconds: it asks what was published in that time.
    0: it does not ask; None: it has version 0.1.0, and neither asks nor answers."""
    due: Annotated[tuple[Count, ...], Meta(max_length=CHAINS_PER_MESSAGE)] | None = None
    """The answer: for each of the chains, the first number that was published in that time. None: no
    answer."""

    @property
    def cost(self) -> int:
        """See `Message.cost`. Who greets with all chains that a topic may have stays within its burst."""
        return 1 + len(self.chains) // _CHAINS_AT_ONE_COST


class Resend(Message, frozen=True, tag=32):
    """Asks for a range of a chain."""

    topic: WireTopicId
    author: WireAuthorId
    device: WireDeviceId
    first: Count
    last: Count


class Resent(Message, frozen=True, tag=33):
    """Units that the sender holds of a requested range; `done` marks the last page."""

    topic: WireTopicId
    author: WireAuthorId
    device: WireDeviceId
    first: Count
    last: Count
    """The range that was requested."""
    units: Units
    cards: Cards
    done: bool
    reason: Reason | None
    """Why the pages lack some of the range: ``not_held``, ``retention``, ``quota``."""
    ages_ms: Annotated[tuple[Count, ...], Meta(max_length=1024)] = ()
    """How long ago each unit was published, as far as the sender knows; empty if it does not say."""


class History(Message, frozen=True, tag=34):
    """Asks for the stored events of a topic, after a position of the peer's log."""

    topic: WireTopicId
    request: Count
    after: Count | None
    """The position; None to begin at `since_ms`."""
    since_ms: Count
    """Leaves out events that were stored before this time; 0 for all."""


class HistoryPage(Message, frozen=True, tag=35):
    """A page of stored events. The asker asks again with `after` until `done`."""

    topic: WireTopicId
    request: Count
    units: Units
    cards: Cards
    after: Count
    done: bool
    begins_ms: Count | None
    """When the oldest stored unit was stored; None if there is none."""
    evicted: bool
    """Whether older units were evicted, so that this is not the beginning."""
    reason: Reason | None
    """Why the sender has no history to give."""


class Watch(Message, frozen=True, tag=36):
    """Asks for receipts in this topic, or no longer."""

    topic: WireTopicId
    on: bool


class Receipt(Message, frozen=True, tag=37):
    """A signed statement that a device has these chains up to here without a gap. The latest one counts."""

    topic: WireTopicId
    receiver: WirePeerId
    storage: bool
    """Whether the device keeps them for others, durably."""
    at_ms: Count
    chains: Places
    sig: WireSignature


class Revoked(Message, frozen=True, tag=38):
    """Says that a device that spoke in this topic is revoked; sent to neighbours that may not know it."""

    topic: WireTopicId
    revocation: Revocation


class Fork(Message, frozen=True, tag=180):
    """Proves that a device signed two different events under one number: two units of its chain."""

    first: Unverified
    second: Unverified
    card: Card

    @property
    def topic(self) -> TopicId:
        """The topic of the chain."""
        return self.first.topic

    @property
    def cost(self) -> int:
        """See `Message.cost`. Whoever is handed one checks two signatures."""
        return 4


StoreNumber = Annotated[bytes, Meta(min_length=8, max_length=8)]
"""Names the store of a storage node; one that began anew, or was put back from a copy, has another."""


class Kept(Message, frozen=True, tag=190):
    """A signed statement of what a storage node keeps, so exact that it can be checked later by anybody.

    The id of a chain's last event covers all events before it. As a receipt it names the chains that have
    changed; as an answer to `AskKept`, all of them, page by page.
    """

    topic: WireTopicId
    keeper: WirePeerId
    store: StoreNumber
    position: Count
    """The end of its log: never less later, whatever its clock does."""
    at_ms: Count
    request: Count
    """The request that this answers; 0: none, a receipt."""
    since_ms: Count
    """For an answer: `first` is the first number stored since then, or one past the last if none was."""
    done: bool
    """Whether this is the last page of an answer."""
    chains: Places
    heads: Annotated[tuple[WireEventId, ...], Meta(max_length=CHAINS_PER_MESSAGE)]
    """For each of the chains, the id of its last event."""
    refuses: Reason | None
    """Why no newer events of these chains are taken, or of any chain if none is named: ``quota``,
    ``disk_full``. None: they are."""
    sig: WireSignature


class AskKept(Message, frozen=True, tag=191):
    """Asks a storage node for a signed statement of all that it keeps of a topic."""

    topic: WireTopicId
    request: Count
    since_ms: Count

    @property
    def cost(self) -> int:
        """See `Message.cost`. The answer names all chains, and each page is signed."""
        return 8


class AskNumber(Message, frozen=True, tag=192):
    """Asks a storage node to show one event that it has confirmed, or to sign that it lacks it."""

    topic: WireTopicId
    request: Count
    author: WireAuthorId
    device: WireDeviceId
    number: Count

    @property
    def cost(self) -> int:
        """See `Message.cost`. The answer is signed."""
        return 4


class Shown(Message, frozen=True, tag=193):
    """The signed answer to `AskNumber`: the id of the event, with the unit that holds it, or why it is not
    here."""

    topic: WireTopicId
    keeper: WirePeerId
    store: StoreNumber
    position: Count
    request: Count
    author: WireAuthorId
    device: WireDeviceId
    number: Count
    id: WireEventId | None
    reason: Reason | None
    """If there is no id: ``retention``, ``quota``, ``damaged``, or ``not_held``."""
    sig: WireSignature
    """Covers all fields before it."""
    unit: Unverified | None
    card: Card | None


class Contradiction(Message, frozen=True, tag=194):
    """Proves that a storage node signed two statements that cannot both be true."""

    kept: Kept
    other: Kept | Shown

    @property
    def topic(self) -> TopicId:
        """The topic of both."""
        return self.kept.topic

    @property
    def cost(self) -> int:
        """See `Message.cost`. Whoever is handed one checks two signatures."""
        return 4


KeepingMessage: TypeAlias = Kept | AskKept | AskNumber | Shown | Contradiction
DeliveryMessage: TypeAlias = (
    Data | Heads | Resend | Resent | History | HistoryPage | Watch | Receipt | Revoked
)


IDS_PER_MESSAGE = 1024
HEADS_PER_MESSAGE = 256
RANGES_PER_MESSAGE = 512
IDS_PER_RANGE = 256

Ids = Annotated[tuple[WireEventId, ...], Meta(max_length=IDS_PER_MESSAGE)]
TopicHeads = Annotated[tuple[WireEventId, ...], Meta(max_length=HEADS_PER_MESSAGE)]
Digest = Annotated[bytes, Meta(min_length=32, max_length=32)]


class Want(TopicMessage, frozen=True, tag=52):
    """Asks for events by id."""

    topic: WireTopicId
    request: Count
    ids: Ids


class Given(TopicMessage, frozen=True, tag=53):
    """The answer to `Want`: events in causal order, and the ids that the sender lacks, with the reason."""

    topic: WireTopicId
    request: Count
    units: Units
    cards: Cards
    unknown: Ids
    reason: Reason | None
    """``not_held`` or ``retention`` for `unknown`; ``too_large`` if the rest must be requested again."""


class Beyond(TopicMessage, frozen=True, tag=54):
    """Asks for the events beyond these heads that the peer knows (the heads walk)."""

    topic: WireTopicId
    request: Count
    heads: TopicHeads


class Further(TopicMessage, frozen=True, tag=55):
    """A page of events beyond the heads, in causal order. If there is more, ask for it from the new heads."""

    topic: WireTopicId
    request: Count
    units: Units
    cards: Cards
    more: bool
    unknown: TopicHeads
    """Heads in the request that the sender does not know: the walk does not help with them."""


class Bound(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A place in the order of (height, id); the end of the order is the largest value of both."""

    height: Count
    id: WireEventId


class Range(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """What the sender has from the end of the previous range up to, not including, `upto`."""

    upto: Bound
    fingerprint: Digest | None
    """The fingerprint of the set. None: the ids are listed instead."""
    ids: Annotated[tuple[WireEventId, ...], Meta(max_length=IDS_PER_RANGE)]
    skip: bool
    """Whether no answer is due: both sides have the same, or this ends the range and `ids` are those that the
    receiver lacks."""


class Reconcile(TopicMessage, frozen=True, tag=56):
    """One step of range-based set reconciliation of a topic's events.

    If the last range does not reach the end of the order, the sender has more to say; without ranges, the
    message only lets the other side go on.
    """

    topic: WireTopicId
    session: Count
    ranges: Annotated[tuple[Range, ...], Meta(max_length=RANGES_PER_MESSAGE)]


CausalMessage: TypeAlias = Want | Given | Beyond | Further | Reconcile
