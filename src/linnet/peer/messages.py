"""Every message of every protocol, as one closed union, and the codec for it.

Tags: 0 `Hello`, 1 to 9 the link itself, 10 to 18 overlay, 19 to 29 and 80 overlays without trackers, 30 to
39 delivery, 40 to 44 streams, 50 to 79 rooms, 81 to 89 edge, 90 to 109 places, 110 to 119 names, 120 to 129
the hash table over the network, 130 to 149 content, 150 to 169 its groups, 170 to 179
where devices are; the next part takes 180.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias, get_args

from msgspec import Meta

from linnet.content.fast.messages import Browsed, Convey, FastMessage
from linnet.content.messages import ContentMessage, Notice, Publish
from linnet.core.hello import Hello
from linnet.core.ids import Count
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.delivery.causal_messages import Further, Given
from linnet.delivery.messages import Data, DeliveryMessage, HistoryPage, Resent
from linnet.edge.messages import EdgeMessage
from linnet.names.messages import NameMessage, RecordIs
from linnet.overlay.kademlia.messages import KademliaMessage, KeepRecord, RecordsAre
from linnet.overlay.messages import OverlayMessage
from linnet.overlay.trackerless.messages import TrackerlessMessage
from linnet.peer.whereabouts import PROTOCOL as WHEREABOUTS
from linnet.peer.whereabouts import Located
from linnet.places.messages import Decision, PlaceMessage, Replayed, StateIs, Talk
from linnet.rooms.messages import (
    ChunkIs,
    ChunkPut,
    ControlPage,
    RelayForward,
    RelaySend,
    ResyncPage,
    RoomMessage,
)
from linnet.streams.messages import StreamMessage
from linnet.wire.codec import Codec


class Ping(Message, frozen=True, tag=1):
    """Are you there?"""

    number: Count


class Pong(Message, frozen=True, tag=2):
    """The answer to the ping of this number."""

    number: Count
    sent_us: Count | None = None
    """When it was sent, by the clock of whoever did; 0.1.0 does not say."""


class Bye(Message, frozen=True, tag=3):
    """I close this link, and why. The driver sends it before it closes."""

    reason: Reason


class Needed(Message, frozen=True, tag=4):
    """Whether the sender needs this link. It closes when neither end does."""

    needed: bool


class Unsupported(Message, frozen=True, tag=5):
    """I do not know messages of this tag; the link lives."""

    message: Annotated[int, Meta(ge=0, le=2**31)]


LinkMessage: TypeAlias = Ping | Pong | Bye | Needed | Unsupported
WireMessage: TypeAlias = (
    LinkMessage
    | OverlayMessage
    | TrackerlessMessage
    | EdgeMessage
    | DeliveryMessage
    | StreamMessage
    | RoomMessage
    | PlaceMessage
    | NameMessage
    | KademliaMessage
    | ContentMessage
    | FastMessage
    | Located
)

BULK = (
    Data,
    Resent,
    HistoryPage,
    Given,
    Further,
    ControlPage,
    RelaySend,
    RelayForward,
    ResyncPage,
    ChunkIs,
    ChunkPut,
    Replayed,
    StateIs,
    Decision,
    Talk,
    RecordIs,
    RecordsAre,
    KeepRecord,
    Publish,
    Notice,
    Convey,
    Browsed,
)
"""What waits in the data lane of an outbox; all other messages go before."""

PROTOCOLS = {
    "link": 1,
    "overlay": 1,
    "trackerless": 1,
    "delivery": 1,
    "streams": 1,
    "rooms": 1,
    "edge": 1,
    "places": 1,
    "names": 1,
    "kademlia": 1,
    "content": 1,
    "fast": 1,
    WHEREABOUTS: 1,
}
"""Protocols of this node with their versions, for `Hello`."""

PROTOCOL_OF: dict[type, str] = {
    **dict.fromkeys(get_args(LinkMessage), "link"),
    **dict.fromkeys(get_args(OverlayMessage), "overlay"),
    **dict.fromkeys(get_args(TrackerlessMessage), "trackerless"),
    **dict.fromkeys(get_args(EdgeMessage), "edge"),
    **dict.fromkeys(get_args(DeliveryMessage), "delivery"),
    **dict.fromkeys(get_args(StreamMessage) or (StreamMessage,), "streams"),
    **dict.fromkeys(get_args(RoomMessage), "rooms"),
    **dict.fromkeys(get_args(PlaceMessage), "places"),
    **dict.fromkeys(get_args(NameMessage), "names"),
    **dict.fromkeys(get_args(KademliaMessage), "kademlia"),
    **dict.fromkeys(get_args(ContentMessage), "content"),
    **dict.fromkeys(get_args(FastMessage), "fast"),
    Located: WHEREABOUTS,
}
"""Which protocol a message belongs to: one that the other side lacks is never used with it."""

FIRST_CODEC: Codec[Hello] = Codec(Hello)
"""For the first frame on a link, before which nothing else is read."""

CODEC: Codec[Message] = Codec(WireMessage)
