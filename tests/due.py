"""A timer for tests that need some timer."""

from __future__ import annotations

from linnet.core.timers import Timer


class Due(Timer, frozen=True):
    """Something is due."""

    what: str
    key: bytes = b""
