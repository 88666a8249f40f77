"""All protocols that ship with Linnet, their messages, and the codec for them.

Tags: 0 `Hello`, 1 to 9 the link itself, 10 to 18 overlay, 19 to 29 and 80 overlays without trackers, 30 to 39
delivery, 40 to 44 streams, 50 to 79 rooms, 81 to 89 edge, 90 to 109 places, 110 to 119 names, 120 to 129 the
hash table over the network, 130 to 149 content, 150 to 169 its groups, 170 to 179 whereabouts of devices; the
proofs of forks 180, samples of members 181 and 182, lazy peers 183, statements of storage nodes 190 to 194,
comparisons of what relays signed 195 to 197; the next protocol takes 198. Protocols that a program adds begin
at 1000.
"""

from __future__ import annotations

from typing import Annotated, Never, TypeAlias, get_args

from msgspec import Meta

from linnet.content.fast.messages import Browsed, Convey, FastMessage
from linnet.content.messages import ContentMessage, Notice, Publish
from linnet.core.hello import Hello
from linnet.core.ids import Count
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.delivery.messages import (
    Data,
    DeliveryMessage,
    Fork,
    Further,
    Given,
    HistoryPage,
    KeepingMessage,
    Resent,
    Shown,
)
from linnet.edge.messages import EdgeMessage
from linnet.machine.protocol import Protocol, Vocabulary
from linnet.names.messages import NameMessage, RecordIs
from linnet.overlay.gossip.messages import TrackerlessMessage
from linnet.overlay.kademlia.messages import KademliaMessage, KeepRecord, RecordsAre
from linnet.overlay.messages import OverlayMessage, SampleMessage
from linnet.overlay.tracker_client import SAMPLING
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
from linnet.streams.messages import Follow, StreamMessage
from linnet.wire.codec import Codec


class Ping(Message, frozen=True, tag=1):
    """Asks whether the peer is there."""

    number: Count


class Pong(Message, frozen=True, tag=2):
    """Answers the ping of this number."""

    number: Count
    sent_us: Count | None = None
    """When it was sent, by the sender's clock; version 0.1.0 does not say."""


class Bye(Message, frozen=True, tag=3):
    """Says that the sender closes this link, and why. The driver sends it before it closes."""

    reason: Reason


class Needed(Message, frozen=True, tag=4):
    """Says whether the sender needs this link, which closes when neither end does."""

    needed: bool


class Unsupported(Message, frozen=True, tag=5):
    """Says that the sender does not know messages of this tag; the link stays open."""

    message: Annotated[int, Meta(ge=0, le=2**31)]


LinkMessage: TypeAlias = Ping | Pong | Bye | Needed | Unsupported


def _protocol(name: str, union: object, *bulk: type[Message], is_optional: bool = False) -> Protocol[object]:
    """Return a protocol that ships with Linnet; its messages are those of a union."""
    return Protocol(name, get_args(union) or (union,), bulk, is_optional=is_optional)


SHIPPED = (
    _protocol("link", LinkMessage),
    _protocol("overlay", OverlayMessage),
    _protocol("trackerless", TrackerlessMessage),
    _protocol("delivery", DeliveryMessage, Data, Resent, HistoryPage),
    _protocol("streams", StreamMessage),
    _protocol("forks", Fork),
    _protocol("keeping", KeepingMessage, Shown),
    _protocol(SAMPLING, SampleMessage),
    _protocol("lazy", Follow),
    _protocol(
        "rooms",
        RoomMessage,
        *(Given, Further, ControlPage, RelaySend, RelayForward, ResyncPage, ChunkIs, ChunkPut),
    ),
    _protocol("edge", EdgeMessage),
    _protocol("places", PlaceMessage, Replayed, StateIs, Decision, Talk),
    _protocol("names", NameMessage, RecordIs),
    _protocol("kademlia", KademliaMessage, RecordsAre, KeepRecord, is_optional=True),
    _protocol("content", ContentMessage, Publish, Notice, is_optional=True),
    _protocol("fast", FastMessage, Convey, Browsed, is_optional=True),
    _protocol(WHEREABOUTS, Located, is_optional=True),
)
"""All protocols that ship with Linnet."""

STANDARD = Vocabulary(SHIPPED)
"""The messages of a node without added protocols."""


def vocabulary_with(added: tuple[Protocol[Never], ...]) -> Vocabulary:
    """Return the messages of a node to which a program adds these protocols."""
    return Vocabulary((*SHIPPED, *added)) if added else STANDARD


PROTOCOLS = STANDARD.versions
"""The shipped protocols with their versions, for `Hello`."""
CODEC: Codec[Message] = STANDARD

FIRST_CODEC: Codec[Hello] = Codec(Hello)
"""Reads the first frame on a link, before which nothing else is read."""
