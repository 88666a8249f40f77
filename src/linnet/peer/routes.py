"""Which part of a node hears a message or a timer: by its type, by its owner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, get_args

from linnet.content.fast.messages import FastMessage
from linnet.content.messages import ContentMessage
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.delivery.messages import DeliveryMessage
from linnet.overlay.kademlia.messages import KademliaMessage
from linnet.overlay.messages import TrackerMessage
from linnet.overlay.trackerless.messages import TrackerlessMessage
from linnet.overlay.trackerless.trackerless import rejected_of_proxy
from linnet.peer.content import OWNERS as CONTENT_OWNERS
from linnet.peer.edge import Edge
from linnet.peer.outgoing import Asking
from linnet.peer.parts import Parts
from linnet.places.messages import PlaceMessage
from linnet.places.places import OWNERS as PLACE_OWNERS
from linnet.rooms.relay.relay import OWNERS as RELAY_OWNERS
from linnet.streams import repair
from linnet.streams.messages import StreamMessage
from linnet.streams.streams import OWNERS as STREAM_OWNERS
from linnet.trace.records import Kind, Record

OnMessage = Callable[[PeerId, Any, float], Sequence[Asking]]
"""Each is given only the messages that it is listed for, so that Any is one of them."""
OnTimer = Callable[[Tick, float], Sequence[Asking]]


def message_routes(parts: Parts) -> dict[type, OnMessage]:
    """Who hears a message, of those who do not mark them; and what becomes of one whose part is not here."""
    heard: tuple[tuple[Any, OnMessage], ...] = (
        (DeliveryMessage, parts.streams.on_message),
        (StreamMessage, parts.streams.on_message),
        (PlaceMessage, parts.places.on_message),
        (ContentMessage, parts.content.on_message),
        (FastMessage, parts.content.on_message),
    )
    if parts.kademlia is None:
        heard += ((KademliaMessage, _reject_kademlia),)
    if parts.tracker is None:
        heard += ((TrackerMessage, _ignore_join),)
    if parts.trackerless is None:
        heard += ((TrackerlessMessage, partial(_ignore_gossip, parts.edge)),)
    return {kind: hear for messages, hear in heard for kind in get_args(messages) or (messages,)}


def _reject_kademlia(peer: PeerId, message: KademliaMessage, now: float) -> Sequence[Asking]:
    note = f"{type(message).__name__}: this node takes no part in the hash table"
    return [Record(Kind.REJECTED, peer=peer, reason=Reason.UNSUPPORTED, note=note)]


def _ignore_join(peer: PeerId, message: TrackerMessage, now: float) -> Sequence[Asking]:
    return ()


def _ignore_gossip(edge: Edge, peer: PeerId, message: TrackerlessMessage, now: float) -> Sequence[Asking]:
    return [rejected_of_proxy(peer, message)] if edge.is_ours(peer) else ()


def timer_routes(parts: Parts) -> dict[str, OnTimer]:
    """Who is told that a timer has run out, of those who do not mark them."""
    told: tuple[tuple[Sequence[str], OnTimer], ...] = (
        (STREAM_OWNERS, parts.streams.fired),
        ((repair.OWNER,), parts.streams.repair.fired),
        (RELAY_OWNERS, parts.rooms.fire_relay),
        (PLACE_OWNERS, parts.places.fired),
        (CONTENT_OWNERS, parts.content.fired),
    )
    return {owner: tell for owners, tell in told for owner in owners}
