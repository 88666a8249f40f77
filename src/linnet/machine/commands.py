"""The base of all commands that an application gives to a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Generic, Protocol, TypeVar, cast

from msgspec import Meta, Struct

from linnet.core.errors import BadText, Refused, RemoteError
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox

BLOCKED_HERE = "this device is blocked here"


R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

Hex = Annotated[bytes, Meta(extra={"told": "hex"})]
"""Bytes that users see as hexadecimal digits."""
AsText = Annotated[bytes, Meta(extra={"told": "text"})]
"""Bytes that users see as text; invalid UTF-8 is replaced."""
Commas = Meta(extra={"told": "commas"})
"""Marks a tuple of names that users write as one text, separated by commas."""


class Command(Struct, Generic[R_co], frozen=True, gc=False):
    """The base of the commands of an application: each is answered by one `R_co`, or by `Declined`.

    Its fields carry their limits as `msgspec.Meta`. The class alone describes an operation of the control
    API.
    """


class Done(Struct, frozen=True, gc=False):
    """The command was carried out."""


class Declined(Struct, frozen=True, gc=False):
    """The command was not carried out, not even in part."""

    reason: Reason
    detail: str


class Ask(Protocol):
    """Gives a command to a node, in this process or in another, and waits for the answer."""

    async def __call__(self, command: Command[R], /) -> R:
        """Return the answer; raises `Refused` if the command is declined."""


def answer_to(command: Command[R], answer: object) -> R:
    """Return a machine's reply with the type that the command tells; raises `Refused` if it declined."""
    if isinstance(answer, Declined):
        raise Refused(answer.reason, answer.detail)
    return cast("R", answer)


def declined(error: BadText | Refused | RemoteError) -> Declined:
    """Return the answer for a command that ended in this error."""
    if isinstance(error, BadText):
        return Declined(Reason.MALFORMED, str(error))
    return Declined(error.reason, error.detail)


class SubscriptionCommand(Command[Done], frozen=True, gc=False):
    """The base of commands about a subscription; each goes to the part that holds the subscription."""

    subscription: int
    """The number of the subscription, as given when it was opened."""


def carry_out(out: Outbox, request: int, act: Callable[[], None]) -> None:
    """Carry out a command. If it is refused, decline it and restore the outbox."""
    before = out.mark()
    try:
        act()
    except (BadText, Refused, RemoteError) as error:
        out.forget_since(before)
        out.reply(request, declined(error))
