"""How an error is told over the control API: a status, a reason, words, and what to do."""

from __future__ import annotations

from linnet.core.errors import BadText, LinnetError, Refused, StoreError
from linnet.core.reasons import Reason
from linnet.net.failure import DriverStopped
from linnet.node.control_types import ErrorReply, ErrorView

_STATUS = {
    Reason.MALFORMED: 400,
    Reason.UNSUPPORTED: 400,
    Reason.TOO_LARGE: 413,
    Reason.NOT_A_PUBLISHER: 403,
    Reason.CARD_EXPIRED: 403,
    Reason.CARD_REVOKED: 403,
    Reason.BLOCKED: 403,
    Reason.TOO_MANY: 429,
    Reason.QUEUE_FULL: 503,
    Reason.CONGESTED: 503,
    Reason.SHUTDOWN: 503,
    Reason.TIMEOUT: 503,
}
_DECLINED = 409

_HINTS = {
    Reason.NOT_A_PUBLISHER: "the stream's owner decides who may publish; linnet status shows your person id",
    Reason.TOO_LARGE: "split it, or publish a reference to it",
    Reason.CONGESTED: "all links are busy; publish slower, or try again",
    Reason.QUEUE_FULL: "publish slower, or try again",
    Reason.TOO_MANY: "close some first",
    Reason.SHUTDOWN: "start the node again: linnet up",
    Reason.CARD_EXPIRED: "put the person's key into the home and start the node again: it renews the card",
}


class ApiError(LinnetError):
    """An error of a request itself, before the node is asked."""

    def __init__(self, status: int, reason: str, detail: str, hint: str = "") -> None:
        super().__init__(f"{reason}: {detail}")
        self.status = status
        self.view = ErrorView(reason, detail, hint)


def told(error: Exception) -> tuple[int, ErrorReply]:
    """Status and words for an error. One that is not ours is a bug and gives nothing away."""
    match error:
        case ApiError():
            return error.status, ErrorReply(error.view)
        case Refused():
            view = ErrorView(error.reason.value, error.detail, _HINTS.get(error.reason, ""))
            return _STATUS.get(error.reason, _DECLINED), ErrorReply(view)
        case BadText():
            return 400, ErrorReply(ErrorView("bad_request", str(error)))
        case DriverStopped():
            return 503, ErrorReply(ErrorView(Reason.SHUTDOWN.value, str(error), _HINTS[Reason.SHUTDOWN]))
        case StoreError():
            return 503, ErrorReply(ErrorView("store", str(error), "look at: linnet doctor"))
        case _:
            hint = "this is a bug; the node's own output says more"
            return 500, ErrorReply(ErrorView(Reason.BUG.value, type(error).__name__, hint))
