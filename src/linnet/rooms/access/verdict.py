"""Why an event is not allowed."""

from __future__ import annotations

from msgspec import Struct

from linnet.core.reasons import Reason


class Refusal(Struct, frozen=True, gc=False):
    """A rule of the room stands against an event."""

    reason: Reason
    rule: str
    """The rule and its numbers in a few words, for people: "ban: level 0 is below 50"."""
