"""Which part of a node hears a message or a timer: by its type, by its owner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, get_args

from linnet.content.fast.messages import FastMessage
from linnet.content.messages import ContentMessage
from linnet.core.ids import PeerId
from linnet.core.timers import Tick
from linnet.delivery.messages import DeliveryMessage
from linnet.edge.messages import EdgeMessage
from linnet.names.messages import NameMessage
from linnet.overlay.kademlia.messages import KademliaMessage
from linnet.peer import links
from linnet.peer.edge import OWNERS as EDGE_OWNERS
from linnet.peer.network import OWNERS as NETWORK_OWNERS
from linnet.peer.outgoing import Asking
from linnet.peer.parts import Parts
from linnet.places.messages import PlaceMessage
from linnet.places.places import OWNERS as PLACE_OWNERS
from linnet.rooms.messages import RoomMessage
from linnet.rooms.rooms import OWNERS as ROOM_OWNERS
from linnet.streams import repair
from linnet.streams.messages import StreamMessage
from linnet.streams.streams import OWNERS as STREAM_OWNERS

OnMessage = Callable[[PeerId, Any, float], Sequence[Asking]]
"""Each is given only the messages that it is listed for, so that Any is one of them."""
OnTimer = Callable[[Tick, float], Sequence[Asking]]


def message_routes(parts: Parts) -> dict[type, OnMessage]:
    """Who hears a message. Those of links and overlays concern more than one part: the node routes them."""
    heard: tuple[tuple[Any, OnMessage], ...] = (
        (DeliveryMessage, parts.streams.on_message),
        (StreamMessage, parts.streams.on_message),
        (RoomMessage, parts.rooms.on_message),
        (PlaceMessage, parts.places.on_message),
        (NameMessage, parts.network.on_message),
        (KademliaMessage, parts.network.on_message),
        (ContentMessage, parts.network.on_message),
        (FastMessage, parts.network.on_message),
        (EdgeMessage, parts.edge.on_message),
    )
    return {kind: hear for messages, hear in heard for kind in get_args(messages) or (messages,)}


def timer_routes(parts: Parts) -> dict[str, OnTimer]:
    """Who is told that a timer has run out; those of overlays and local networks go through the node."""
    told: tuple[tuple[Sequence[str], OnTimer], ...] = (
        (STREAM_OWNERS, parts.streams.fired),
        ((repair.OWNER,), parts.streams.repair.fired),
        (ROOM_OWNERS, parts.rooms.fired),
        (PLACE_OWNERS, parts.places.fired),
        (tuple(NETWORK_OWNERS), parts.network.fired),
        (EDGE_OWNERS, parts.edge.fired),
        ((links.OWNER,), parts.links.fired),
    )
    return {owner: tell for owners, tell in told for owner in owners}
