"""Why a stream has no neighbours, and what to do about it, in words."""

from __future__ import annotations

from linnet.core.reasons import Reason

_WORDS = {
    Reason.NO_ADDRESS.value: (
        "no tracker is known, so nobody can be found; name one with: linnet up --tracker KEY@HOST:PORT"
    ),
    Reason.UNREACHABLE_INBOUND.value: (
        "this node cannot be dialled, and nobody who can be dialled is here so far: two that only dial never "
        "meet; set listen in linnet.toml on one of them, or run a node that listens"
    ),
}


def alone_text(reason: str | None) -> str | None:
    """What to tell people; None if there is nothing to say."""
    return None if reason is None else _WORDS.get(reason, reason)
