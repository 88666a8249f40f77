"""What every message between nodes is: a frozen value with a tag of its own, an array on the wire."""

from __future__ import annotations

from msgspec import Struct

from linnet.core.ids import TopicId


class Message(Struct, frozen=True, array_like=True, gc=False):
    """Base of all messages. `linnet.peer.messages` joins them into the closed union that the codec reads."""


class TopicMessage(Message, frozen=True):
    """Base of messages that several ways to subscribe use: each goes to the one that holds its topic."""

    @property
    def topic(self) -> TopicId:
        """What it is about."""
        raise NotImplementedError
