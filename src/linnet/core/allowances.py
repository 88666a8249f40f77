"""Token buckets: how much each sender may send, as a burst and per second."""

from __future__ import annotations

from collections.abc import Hashable

SENDERS = 4096
"""Senders whose bucket is remembered; those that were silent longest are forgotten."""


class Allowances:
    """Keeps a token bucket for each sender: what was left, and when."""

    def __init__(self, burst: float, rate: float, senders: int = SENDERS) -> None:
        self._burst = burst
        self._rate = rate
        self._senders = senders
        self._left: dict[Hashable, tuple[float, float]] = {}

    def __len__(self) -> int:
        return len(self._left)

    def spend(self, sender: Hashable, now: float) -> bool:
        """Take one token of a sender; return whether it had one."""
        left, at = self._left.pop(sender, (self._burst, now))
        left = min(self._burst, left + max(0.0, now - at) * self._rate)
        self._left[sender] = (left - 1.0 if left >= 1.0 else left, now)
        if len(self._left) > self._senders:
            del self._left[next(iter(self._left))]
        return left >= 1.0
