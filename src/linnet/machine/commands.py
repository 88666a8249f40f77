"""What commands of the application to any part have in common."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from linnet.core.errors import BadText, Refused, RemoteError
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox

BLOCKED_HERE = "this device is blocked here"


class Declined(Struct, frozen=True, gc=False):
    """It was not done, and nothing of it was."""

    reason: Reason
    detail: str


def declined(error: BadText | Refused | RemoteError) -> Declined:
    """What an application is answered whose command ended in this error."""
    if isinstance(error, BadText):
        return Declined(Reason.MALFORMED, str(error))
    return Declined(error.reason, error.detail)


class SubscriptionCommand(Struct, frozen=True, gc=False):
    """Base of what is asked of a subscription: it goes to the part that reads it."""

    subscription: int


def carry_out(out: Outbox, request: int, act: Callable[[], None]) -> None:
    """Do what a command asks for. What is refused is declined, and the outbox is as it was before."""
    before = out.mark()
    try:
        act()
    except (BadText, Refused, RemoteError) as error:
        out.forget_since(before)
        out.reply(request, declined(error))
