"""Notices of the edge to other parts of a node: devices on local networks, and requests about streams."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.machine.outbox import Notice, TopicNotice


class LanPeer(Struct, frozen=True, gc=False):
    """This device is on this network and may be dialled at these hints; sent again when they change."""

    contact: Contact
    network: bytes

    @property
    def peer(self) -> PeerId:
        """The key of the device."""
        return self.contact.peer


class LanGone(Struct, frozen=True, gc=False):
    """This device is no longer on this network."""

    peer: PeerId
    network: bytes


LanChange: TypeAlias = LanPeer | LanGone


class LanChanged(Notice, frozen=True):
    """Changes on local networks.

    All of them are in one notice, so that the topics allowed there are settled before anybody is spoken to.
    """

    changes: tuple[LanChange, ...]


class ServiceAsked(Notice, frozen=True):
    """A proxy was asked to serve these topics: from now on it knows that this node wants them."""

    proxy: PeerId
    topics: tuple[TopicId, ...]


class Reached(TopicNotice, frozen=True):
    """A proxy serves this topic, or a client is served in it: the two are neighbours now."""

    peer: PeerId
    same: bool
    """Whether both know the same already, so that neither has to tell the other anything."""


class Keep(TopicNotice, frozen=True):
    """Asks the node to take part in this stream and keep it for others."""

    stream: str
    retention: float
    """Seconds for which events are kept."""
    quota: int
    """Bytes that the stream may take."""


class LetGo(TopicNotice, frozen=True):
    """Asks the node to stop keeping this stream."""

    stream: str


class Trim(TopicNotice, frozen=True):
    """Asks the node to evict the oldest events of a stream until it takes at most `most` bytes."""

    most: int
