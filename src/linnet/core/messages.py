"""The base of all messages between nodes: frozen values with a tag each, arrays on the wire."""

from __future__ import annotations

from msgspec import Struct

from linnet.core.ids import TopicId


class Message(Struct, frozen=True, array_like=True, gc=False):
    """Base of all messages. `linnet.peer.messages` joins them into the closed union that the codec reads."""

    @property
    def cost(self) -> int:
        """The number of messages that it counts as, against the allowance of the peer that sends it."""
        return 1


class BulkMessage(Message, frozen=True):
    """Base of bulk messages, as many as there is content to transfer, which do not count against the sender's
    allowance. The part that receives them blames a peer that sends too many, or answers a question nobody
    asked."""

    @property
    def cost(self) -> int:
        """See `Message.cost`."""
        return 0


class TopicMessage(Message, frozen=True):
    """Base of messages that several parts receive: each goes to the part that holds its topic."""

    @property
    def topic(self) -> TopicId:
        """The topic that the message is about."""
        raise NotImplementedError
