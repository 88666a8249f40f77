"""How a command of the application ends that a part does not carry out."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from linnet.core.errors import BadText, Refused, RemoteError
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox


class Declined(Struct, frozen=True, gc=False):
    """It was not done, and nothing of it was."""

    reason: Reason
    detail: str


def carry_out(out: Outbox, request: int, act: Callable[[], None]) -> None:
    """Do what a command asks for. What is refused is declined, and the outbox is as it was before."""
    before = out.mark()
    try:
        act()
    except BadText as error:
        out.forget_since(before)
        out.reply(request, Declined(Reason.MALFORMED, str(error)))
    except (Refused, RemoteError) as error:
        out.forget_since(before)
        out.reply(request, Declined(error.reason, error.detail))
