"""What every message between nodes is: a frozen value with a tag of its own, an array on the wire."""

from __future__ import annotations

from msgspec import Struct

from linnet.core.ids import TopicId


class Message(Struct, frozen=True, array_like=True, gc=False):
    """Base of all messages. `linnet.peer.messages` joins them into the closed union that the codec reads."""

    @property
    def cost(self) -> int:
        """As how many messages it counts, of those that a peer may send in a while."""
        return 1


class BulkMessage(Message, frozen=True):
    """Base of messages of which there are as many as there is to be told. Who sends more than it may, or
    answers what nobody asked, is blamed by the part that hears it."""

    @property
    def cost(self) -> int:
        """See `Message.cost`."""
        return 0


class TopicMessage(BulkMessage, frozen=True):
    """Base of what several ways to subscribe spread events with: it goes to the one that holds its topic."""

    @property
    def topic(self) -> TopicId:
        """What it is about."""
        raise NotImplementedError
