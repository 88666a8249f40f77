"""How the HTTP face of a relay says no: a status, a reason, words, and what to do."""

from __future__ import annotations

from linnet.core.errors import BadText, LinnetError, Refused, RemoteError, StoreError
from linnet.core.reasons import Reason
from linnet.net.failure import DriverStopped
from linnet.node.relay_http_types import RelayErrorReply

_STATUS = {
    Reason.MALFORMED: 400,
    Reason.UNSUPPORTED: 400,
    Reason.AUTH_FAILED: 401,
    Reason.BAD_SIGNATURE: 401,
    Reason.WRONG_KEY: 401,
    Reason.CARD_EXPIRED: 401,
    Reason.CARD_NOT_YET_VALID: 401,
    Reason.CARD_REVOKED: 401,
    Reason.STALE: 401,
    Reason.FUTURE_TIME: 401,
    Reason.REPEATED_NONCE: 401,
    Reason.UNKNOWN_ROOM: 404,
    Reason.IN_USE: 409,
    Reason.CURSOR_EXPIRED: 410,
    Reason.TOO_LARGE: 413,
    Reason.TOO_MANY: 429,
    Reason.FLOODING: 429,
    Reason.QUOTA: 507,
    Reason.CONGESTED: 503,
    Reason.QUEUE_FULL: 503,
    Reason.SHUTDOWN: 503,
    Reason.TIMEOUT: 503,
    Reason.MISSING_DEPENDENCY: 503,
    Reason.BUG: 500,
}
_FORBIDDEN = 403

_HINTS = {
    Reason.MALFORMED: "see /linnet/relay/v1/openapi.json",
    Reason.AUTH_FAILED: "sign the request with the device's key: docs/reference/relay-http.md",
    Reason.BAD_SIGNATURE: "sign what is sent, as it is sent, for this relay: docs/reference/relay-http.md",
    Reason.WRONG_KEY: "send the card of the device that signs",
    Reason.CARD_EXPIRED: "renew the device's card",
    Reason.CARD_NOT_YET_VALID: "check the clock of the device that issued the card",
    Reason.STALE: "set the clock, or go by clock_ms of /linnet/relay/v1/info",
    Reason.FUTURE_TIME: "set the clock, or go by clock_ms of /linnet/relay/v1/info",
    Reason.REPEATED_NONCE: "draw a new nonce for every request, also for a repeated one",
    Reason.NOT_A_MEMBER: "join the room first",
    Reason.NOT_A_RELAY: "only devices that the room names as relays may forward; use send",
    Reason.UNKNOWN_ROOM: "ask the room's members for its relays",
    Reason.IN_USE: "give every request that is not a repetition a transaction id of its own",
    Reason.CURSOR_EXPIRED: "go on from oldest_cursor, and fetch what is missing from members",
    Reason.TOO_LARGE: "send less at once",
    Reason.TOO_MANY: "wait as long as Retry-After says",
    Reason.FLOODING: "wait as long as Retry-After says",
    Reason.CONGESTED: "wait as long as Retry-After says",
    Reason.QUOTA: "use another relay of the room",
    Reason.SHUTDOWN: "use another relay of the room, or try again",
    Reason.TIMEOUT: "try again, with the same transaction id if there is one",
    Reason.MISSING_DEPENDENCY: "try again",
}


class RelayHttpError(LinnetError):
    """A request that is not served."""

    def __init__(
        self,
        reason: Reason | str,
        detail: str,
        status: int | None = None,
        hint: str | None = None,
        oldest_cursor: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        """Status and hint follow from the reason, if they are not given."""
        known = reason if isinstance(reason, Reason) else Reason.UNKNOWN
        super().__init__(f"{reason}: {detail}")
        self.status = _STATUS.get(known, _FORBIDDEN) if status is None else status
        self.reason = known
        hint = _HINTS.get(known, "") if hint is None else hint
        self.reply = RelayErrorReply(str(reason), detail, hint, oldest_cursor)
        self.retry_after = retry_after


def told(error: Exception) -> RelayHttpError:
    """Any error as what is answered. One that is not ours is a bug and gives nothing away."""
    match error:
        case RelayHttpError():
            return error
        case RemoteError() | Refused():
            return RelayHttpError(error.reason, error.detail)
        case BadText():
            return RelayHttpError(Reason.MALFORMED, str(error))
        case DriverStopped():
            return RelayHttpError(Reason.SHUTDOWN, str(error), retry_after=5.0)
        case TimeoutError():
            return RelayHttpError(Reason.TIMEOUT, "the relay did not answer in time", retry_after=5.0)
        case StoreError():
            return RelayHttpError("store", "the relay cannot keep anything now", 503, "use another relay")
        case _:
            return RelayHttpError(Reason.BUG, type(error).__name__, hint="this is a bug of the relay")
