"""How an error is told over the control API: a status, a reason, words, and what to do."""

from __future__ import annotations

import re

from linnet.core.counts import counted
from linnet.core.errors import BadText, LinnetError, Refused, StoreError
from linnet.core.reasons import Reason
from linnet.net.failure import DriverStopped
from linnet.node.control_types import ErrorReply, ErrorView
from linnet.node.places import TurnedAway

_STATUS = {
    Reason.MALFORMED: 400,
    Reason.UNSUPPORTED: 400,
    Reason.TOO_LARGE: 413,
    Reason.NOT_A_PUBLISHER: 403,
    Reason.CARD_EXPIRED: 403,
    Reason.CARD_REVOKED: 403,
    Reason.BLOCKED: 403,
    Reason.NOT_ALLOWED: 403,
    Reason.NOT_A_MEMBER: 403,
    Reason.BANNED: 403,
    Reason.NO_POWER: 403,
    Reason.NOT_INVITED: 403,
    Reason.WAITING: 403,
    Reason.INVITATION_EXPIRED: 403,
    Reason.RELAY_ONLY: 403,
    Reason.NOT_A_RELAY: 403,
    Reason.UNKNOWN_ROOM: 404,
    Reason.NOT_HELD: 404,
    Reason.TOO_MANY: 429,
    Reason.QUEUE_FULL: 503,
    Reason.CONGESTED: 503,
    Reason.SHUTDOWN: 503,
    Reason.TIMEOUT: 503,
}
_DECLINED = 409

_HINTS = {
    Reason.NOT_A_PUBLISHER: "the stream's owner decides who may publish; linnet status shows your person id",
    Reason.BLOCKED: "linnet block --unblock has to do with it again",
    Reason.NO_POWER: "linnet room state shows which level it needs; a creator can raise yours",
    Reason.WAITING: "linnet place list shows when you are in",
    Reason.NOT_INVITED: "ask a member for an invitation: linnet room invite",
    Reason.INVITATION_EXPIRED: "ask its sender for a new one: linnet room invite",
    Reason.BANNED: "only a member of the room with the level to ban can take it back",
    Reason.NOT_A_MEMBER: "linnet room list shows the rooms of this node",
    Reason.UNKNOWN_ROOM: "linnet room list shows the rooms of this node",
    Reason.NOT_A_RELAY: "start the node as one: linnet up --role relay",
    Reason.TOO_LARGE: "split it, or publish a reference to it",
    Reason.CONGESTED: "all links are busy; publish slower, or try again",
    Reason.QUEUE_FULL: "publish slower, or try again",
    Reason.TOO_MANY: "close some first",
    Reason.SHUTDOWN: "start the node again: linnet up",
    Reason.CARD_EXPIRED: "renew it with your 24 words, and start the node again: linnet id renew",
}


class ApiError(LinnetError):
    """An error of a request itself, before the node is asked."""

    def __init__(self, status: int, reason: str, detail: str, hint: str = "") -> None:
        super().__init__(f"{reason}: {detail}")
        self.status = status
        self.view = ErrorView(reason, detail, hint)


_LENGTH = re.compile(r"Expected `(str|array)` of length (<=|>=) (\d+) - at `\$\.(\w+)`")


def length_in_words(problem: str) -> str:
    """What msgspec says of a text or list that is too long or too short, for people; other words stay."""
    found = _LENGTH.fullmatch(problem)
    if found is None:
        return problem
    sort, compared, number, field = found.groups()
    bound = "at most" if compared == "<=" else "at least"
    if sort == "array":
        return f"{field}: {bound} {number}"
    size = "long" if compared == "<=" else "short"
    return f"the {field} is too {size}: {bound} {counted(int(number), 'character')}"


def told(error: Exception) -> tuple[int, ErrorReply]:
    """Status and words for an error. One that is not ours is a bug and gives nothing away."""
    match error:
        case ApiError():
            return error.status, ErrorReply(error.view)
        case TurnedAway():
            named = error.variables["_place"].decode() if error.elsewhere is not None else ""
            hint = (
                f"try there: linnet place enter {named}" if named else "linnet place enter knocks once more"
            )
            return 403, ErrorReply(ErrorView(error.reason.value, error.detail, hint, named))
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
