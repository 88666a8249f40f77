"""What commands of the application to any part have in common."""

from __future__ import annotations

from msgspec import Struct

from linnet.core.reasons import Reason


class Declined(Struct, frozen=True, gc=False):
    """It was not done, and nothing of it was."""

    reason: Reason
    detail: str


class SubscriptionCommand(Struct, frozen=True, gc=False):
    """Base of what is asked of a subscription: it goes to the part that has opened it."""

    subscription: int
