"""What nodes that share a counter tell each other."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from linnet.core.ids import Count, TopicId, WireAuthorId, WireDeviceId, WireTopicId
from linnet.core.messages import Message
from linnet.delivery.messages import Cards, ChainPlace, Receipt, Units
from linnet.event.event import Unverified
from linnet.identity.cards import Card
from linnet.machine.protocol import FIRST_FREE_TAG

DEVICES = 512
"""Devices that may add to one counter: what one message tells of."""


class Addition(Message, frozen=True, tag=FIRST_FREE_TAG):
    """An addition that was just made, on its way to all who share the counter."""

    unit: Unverified
    card: Card | None
    """The card of its device, by which its signature is checked."""

    @property
    def topic(self) -> TopicId:
        """The counter that is added to."""
        return self.unit.topic


class CountsAre(Message, frozen=True, tag=FIRST_FREE_TAG + 1):
    """How far I have the additions of each device. Who has fewer asks for the rest."""

    topic: WireTopicId
    chains: Annotated[tuple[ChainPlace, ...], Meta(max_length=DEVICES)]


class AskAdditions(Message, frozen=True, tag=FIRST_FREE_TAG + 2):
    """Please send the additions of one device from this number on."""

    topic: WireTopicId
    request: Count
    author: WireAuthorId
    device: WireDeviceId
    first: Count
    last: Count


class Additions(Message, frozen=True, tag=FIRST_FREE_TAG + 3):
    """The additions that were asked for, in their order; as many as a page holds."""

    topic: WireTopicId
    request: Count
    units: Units
    cards: Cards


class CounterReceipt(Message, frozen=True, tag=FIRST_FREE_TAG + 4):
    """A device has these additions durably, by its own signed word. It is passed on to all."""

    receipt: Receipt
