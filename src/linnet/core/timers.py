"""Timers are values: they go out with `SetTimer` and come back in `TimerFired`."""

from __future__ import annotations

from msgspec import Struct


class Tick(Struct, frozen=True, gc=False):
    """A timer: whose it is, what it is for, and for which topic, peer or chain.

    Two equal ticks are the same timer: setting one again replaces it.
    """

    owner: str
    """The part that set it; the node machine routes by this."""
    what: str
    key: bytes = b""
