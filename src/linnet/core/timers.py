"""Timers are values: they go out with `SetTimer` and come back in `TimerFired`."""

from __future__ import annotations

from msgspec import Struct


class Timer(Struct, frozen=True, gc=False):
    """Base of all timers: its type says what is due, its fields for whom.

    Two equal timers of one type are the same timer: setting one again replaces it.
    """
