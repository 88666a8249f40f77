"""Timers as values: a machine sends them out with `SetTimer` and gets them back in `TimerFired`."""

from __future__ import annotations

from msgspec import Struct

from linnet.core.ids import TopicId


class Timer(Struct, frozen=True, gc=False):
    """Base of all timers: its type says what is due, its fields for which object.

    Two equal timers of one type are the same timer: setting one again replaces it.
    """


class TopicTimer(Timer, frozen=True, gc=False):
    """A timer of one topic."""

    topic: TopicId
