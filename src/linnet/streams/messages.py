"""The messages that only streams use (tags 40 to 44, and 183)."""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias

from linnet.core.ids import WireTopicId
from linnet.core.messages import Message
from linnet.event.event import Unverified
from linnet.identity.cards import Card


class PolicyIs(Message, frozen=True, tag=40):
    """The owner's policy for a stream, sent to a neighbour that may not know it."""

    topic: WireTopicId
    unit: Unverified
    card: Card


StreamMessage: TypeAlias = PolicyIs


class Wish(IntEnum):
    """What a member of a stream wants of another one that is not its neighbour."""

    NOTHING = 0
    HEADS = 1
    """To be told how far the chains go."""
    UNITS = 2
    """To be sent every unit as well, as a neighbour is."""


class Follow(Message, frozen=True, tag=183):
    """Says what the sender wants of a member that is not its neighbour; the last word counts."""

    topic: WireTopicId
    wish: Wish

    @property
    def cost(self) -> int:
        """See `Message.cost`. It is answered with heads."""
        return 4
