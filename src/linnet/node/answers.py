"""What a command of the node machine is answered by, for whoever asked."""

from __future__ import annotations

from typing import TypeVar

from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.delivery.commands import Declined

R = TypeVar("R")


def expected(result: object, *kinds: type[R]) -> R:
    """The answer that a command has; `Refused` if it was declined."""
    if isinstance(result, Declined):
        raise Refused(result.reason, result.detail)
    for kind in kinds:
        if isinstance(result, kind):
            return result
    raise Refused(Reason.BUG, f"a command was answered by {type(result).__name__}")
