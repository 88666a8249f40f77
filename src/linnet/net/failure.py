"""How a connection or a driver ends before its time."""

from __future__ import annotations

from linnet.core.errors import LinnetError, LocalError
from linnet.core.reasons import Reason


class LinkFailure(LinnetError):
    """No link came of a connection, ours or another's; carries the reason and words for people."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class DriverStopped(LocalError):
    """The node was asked something while it was not running."""


class MachineFailed(LinnetError):
    """A machine raised: our bug. Nothing of the batch was kept, no promise of it was performed.

    The machine's own exception, with its traceback, is the cause of this one.
    """

    def __init__(self, event: object, error: BaseException) -> None:
        # The type of the input and no more of it: inputs carry what people wrote.
        self.input_type = type(event).__name__
        super().__init__(f"handling {self.input_type} raised {type(error).__name__}: {error}")
