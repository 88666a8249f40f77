"""How a command of the application ends that a part does not carry out."""

from __future__ import annotations

from msgspec import Struct

from linnet.core.errors import BadText, Refused, RemoteError
from linnet.core.reasons import Reason


class Declined(Struct, frozen=True, gc=False):
    """It was not done, and nothing of it was."""

    reason: Reason
    detail: str


def declined(error: BadText | Refused | RemoteError) -> Declined:
    """What an application is answered whose command ended in this error."""
    if isinstance(error, BadText):
        return Declined(Reason.MALFORMED, str(error))
    return Declined(error.reason, error.detail)
