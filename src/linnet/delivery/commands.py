"""What every way to subscribe is asked and answered alike."""

from __future__ import annotations

from msgspec import Struct

from linnet.machine.commands import Declined as Declined
from linnet.machine.commands import SubscriptionCommand


class Unsubscribe(SubscriptionCommand, frozen=True, gc=False):
    """Hand me no more. A durable subscription keeps its place. Answered by `Done`."""


class Consumed(SubscriptionCommand, frozen=True, gc=False):
    """So many more items of a subscription were handled; makes room, and moves a durable cursor.

    Answered by `Done` once the cursor is durable.
    """

    items: int


class Done(Struct, frozen=True, gc=False):
    """It was done."""
