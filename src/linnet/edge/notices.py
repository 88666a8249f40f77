"""What the edge tells other parts of a node: who is on local networks, and what it asks of streams."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.machine.outbox import Notice, TopicNotice


class LanPeer(Struct, frozen=True, gc=False):
    """This device is on this network, and may be dialled there at these hints; also if they changed."""

    contact: Contact
    network: bytes

    @property
    def peer(self) -> PeerId:
        """The device."""
        return self.contact.peer


class LanGone(Struct, frozen=True, gc=False):
    """This device is on this network no longer."""

    peer: PeerId
    network: bytes


LanChange: TypeAlias = LanPeer | LanGone


class LanChanged(Notice, frozen=True):
    """Something happened on local networks. All of it is one notice: what may be spoken of there is settled
    before anybody is spoken to."""

    changes: tuple[LanChange, ...]


class ServiceAsked(Notice, frozen=True):
    """A proxy was asked to serve these topics: from now on it knows that this node wants them."""

    proxy: PeerId
    topics: tuple[TopicId, ...]


class Reached(TopicNotice, frozen=True):
    """A proxy serves this topic, or a client is served in it: the two are neighbours now."""

    peer: PeerId
    same: bool
    """Whether both know the same already, so that nothing has to be said."""


class Keep(TopicNotice, frozen=True):
    """Take part in this stream and keep it for others, from now on."""

    stream: str
    retention: float
    """Seconds."""
    quota: int
    """Bytes."""


class LetGo(TopicNotice, frozen=True):
    """Keep this stream no longer."""

    stream: str


class Trim(TopicNotice, frozen=True):
    """Remove the oldest of a stream until it takes no more than so many bytes."""

    most: int
