"""The commands that all kinds of subscriptions share."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from linnet.machine.commands import SubscriptionCommand


class Unsubscribe(SubscriptionCommand, frozen=True, gc=False):
    """End a subscription. A durable one keeps its place."""


class Consumed(SubscriptionCommand, frozen=True, gc=False):
    """Tell the node that the application has handled items, to make room and to move a durable cursor.

    Answered once the cursor is durable.
    """

    items: Annotated[int, Meta(ge=1, le=2**31)]
