"""How a command of the application ends that a part does not carry out."""

from __future__ import annotations

from msgspec import Struct

from linnet.core.reasons import Reason


class Declined(Struct, frozen=True, gc=False):
    """It was not done, and nothing of it was."""

    reason: Reason
    detail: str
