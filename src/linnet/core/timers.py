"""Timers are values: they go out with `SetTimer` and come back in `TimerFired`."""

from __future__ import annotations

from msgspec import Struct


class Timer(Struct, frozen=True, gc=False):
    """Base of all timers: its type says what is due, its fields for whom.

    Two equal timers of one type are the same timer: setting one again replaces it.
    """


class Tick(Timer, frozen=True, gc=False):
    """A timer of a part whose timers have no types yet: whose it is, what for, and for which key."""

    owner: str
    """The part that set it; the node machine routes by this."""
    what: str
    key: bytes = b""
