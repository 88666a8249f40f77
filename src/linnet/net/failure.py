"""The errors that end a connection or a driver before its time."""

from __future__ import annotations

from linnet.core.errors import LinnetError, LocalError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason


class LinkFailure(LinnetError):
    """A connection, ours or a peer's, did not become a link; carries the reason and words for people."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class WrongKey(LinkFailure):
    """Somebody else answered at an address, and proved another key."""

    def __init__(self, found: PeerId) -> None:
        super().__init__(Reason.WRONG_KEY, "another device answers at this address")
        self.found = found


class DriverStopped(LocalError):
    """The node was given a command while it was not running."""


class MachineFailed(LinnetError):
    """A machine raised: our bug. Nothing of the batch was kept, and none of its promises was performed.

    The machine's own exception, with its traceback, is the cause of this one.
    """

    def __init__(self, event: object, error: BaseException) -> None:
        # The type of the input and no more of it: inputs carry what people wrote.
        self.input_type = type(event).__name__
        super().__init__(f"handling {self.input_type} raised {type(error).__name__}: {error}")
