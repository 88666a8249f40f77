"""How much each peer may send: so much at once, and so much a second for long."""

from __future__ import annotations

from linnet.core.ids import PeerId

PEERS = 4096
"""Peers whose allowance is remembered; those unheard of for longest are forgotten."""


class Allowances:
    """For each peer what is left, and when that was so."""

    def __init__(self, burst: float, rate: float) -> None:
        self._burst = burst
        self._rate = rate
        self._left: dict[PeerId, tuple[float, float]] = {}

    def spend(self, peer: PeerId, now: float) -> bool:
        """Take one of this peer's; whether there was one."""
        left, at = self._left.pop(peer, (self._burst, now))
        left = min(self._burst, left + max(0.0, now - at) * self._rate)
        self._left[peer] = (left - 1.0 if left >= 1.0 else left, now)
        if len(self._left) > PEERS:
            del self._left[next(iter(self._left))]
        return left >= 1.0
