"""What every way to subscribe is asked and answered alike."""

from __future__ import annotations

from msgspec import Struct

from linnet.machine.commands import Declined as Declined


class Unsubscribe(Struct, frozen=True, gc=False):
    """Hand me no more. A durable subscription keeps its place. Answered by `Done`."""

    subscription: int


class Consumed(Struct, frozen=True, gc=False):
    """So many more items of a subscription were handled; makes room, and moves a durable cursor.

    Answered by `Done` once the cursor is durable.
    """

    subscription: int
    items: int


class Done(Struct, frozen=True, gc=False):
    """It was done."""
