"""What an overlay tells the machine above it: who is a neighbour now. The same for every strategy."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason


class NeighborUp(Struct, frozen=True, gc=False):
    """This peer is a neighbour in this topic, and its link is open."""

    topic: TopicId
    peer: PeerId


class NeighborDown(Struct, frozen=True, gc=False):
    """This peer is a neighbour in this topic no longer."""

    topic: TopicId
    peer: PeerId


class StorageKnown(Struct, frozen=True, gc=False):
    """The nodes that keep this topic, all of them."""

    topic: TopicId
    nodes: tuple[Contact, ...]


class JoinRefused(Struct, frozen=True, gc=False):
    """No tracker of this topic takes us, and why; it is tried again later."""

    topic: TopicId
    reason: Reason


OverlayNotice: TypeAlias = NeighborUp | NeighborDown | StorageKnown | JoinRefused
