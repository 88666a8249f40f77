"""The errors of the control API: a status, a reason, a description, and what to do."""

from __future__ import annotations

import re

from msgspec import Struct

from linnet.core.counts import counted
from linnet.core.errors import BadText, LinnetError, LocalError, Refused, StoreError
from linnet.core.reasons import Reason
from linnet.net.failure import DriverStopped
from linnet.places.address import PlaceAddress, is_address, parse_address
from linnet.places.commands import Turned

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


class ErrorView(Struct, frozen=True):
    """Why a request was declined."""

    reason: str
    detail: str
    hint: str = ""


class ErrorReply(Struct, frozen=True):
    """The request was declined."""

    error: ErrorView


class NodeUnreachable(LocalError):
    """No node runs in this home, or it does not answer."""


class ControlError(LocalError):
    """A running node declined; `reason`, `detail` and `hint` say why and what to do."""

    reason: str
    detail: str

    def __init__(self, status: int, view: ErrorView) -> None:
        super().__init__(f"{view.reason}: {view.detail}" if view.detail else view.reason)
        self.status = status
        self.reason = view.reason
        self.detail = view.detail
        self.hint = view.hint


class RefusedThere(ControlError, Refused):
    """A running node refused, for a reason that a node in this process has as well."""

    reason: Reason

    def __init__(self, status: int, view: ErrorView) -> None:
        ControlError.__init__(self, status, view)
        self.reason = Reason(view.reason)


class ApiError(LinnetError):
    """An error of the request itself, found before the node is asked."""

    def __init__(self, status: int, reason: str, detail: str, hint: str = "") -> None:
        super().__init__(f"{reason}: {detail}")
        self.status = status
        self.view = ErrorView(reason, detail, hint)


class TurnedAway(Refused):
    """The host did not let us in; `elsewhere` is the place that it named instead, if any."""

    def __init__(self, turned: Turned) -> None:
        words = turned.text.decode("utf-8", "replace")
        self.method = turned.method
        self.variables = {each.name: each.value for each in turned.modifiers}
        self.text = words
        detail = f"the host turned us away: {words}" if words else "the host said no"
        if self.elsewhere is not None:
            detail += f"; it names another place: {self.variables['_place'].decode()}"
        super().__init__(turned.reason, detail)

    @property
    def elsewhere(self) -> PlaceAddress | None:
        """The other place to enter that the host named, if any."""
        named = self.variables.get("_place", b"").decode("utf-8", "replace")
        return parse_address(named) if is_address(named) else None


_LENGTH = re.compile(r"Expected `(str|array)` of length (<=|>=) (\d+) - at `\$\.(\w+)`")


def length_in_words(problem: str) -> str:
    """Return msgspec's error about the length of a text or list in plain words, others as they are."""
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
    """Return the status and reply for an error. An error that is not ours is a bug, and reveals nothing."""
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
