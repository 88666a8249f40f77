"""The messages that only streams use (tags 40 to 44)."""

from __future__ import annotations

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
