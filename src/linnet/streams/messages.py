"""What nodes tell each other about streams alone (tags 40 to 44)."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from linnet.core.ids import WireTopicId
from linnet.event.event import Unverified
from linnet.identity.cards import Card


class PolicyIs(Struct, frozen=True, array_like=True, tag=40, gc=False):
    """The owner's policy for a stream, for a neighbour that may not know it."""

    topic: WireTopicId
    unit: Unverified
    card: Card


StreamMessage: TypeAlias = PolicyIs
