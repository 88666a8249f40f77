"""What an overlay tells the machine above it: who is a neighbour now. The same for every strategy."""

from __future__ import annotations

from typing import TypeAlias

from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import LinkUp
from linnet.core.reasons import Reason
from linnet.machine.outbox import Notice, TopicNotice


class NeighborUp(TopicNotice, frozen=True, gc=False):
    """This peer is a neighbour in this topic, and its link is open."""

    peer: PeerId


class NeighborDown(TopicNotice, frozen=True, gc=False):
    """This peer is a neighbour in this topic no longer."""

    peer: PeerId


class StorageKnown(TopicNotice, frozen=True, gc=False):
    """The nodes that keep this topic, all of them."""

    nodes: tuple[Contact, ...]


class JoinRefused(TopicNotice, frozen=True, gc=False):
    """No tracker of this topic takes us, and why; it is tried again later."""

    reason: Reason


class OwnLinkUp(Notice, frozen=True, gc=False):
    """This node is one of its own trackers: it speaks with itself as over a link."""

    event: LinkUp


OverlayNotice: TypeAlias = NeighborUp | NeighborDown | StorageKnown | JoinRefused
