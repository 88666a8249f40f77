"""What the clocks of peers say beside ours: for `linnet doctor`, never for a decision."""

from __future__ import annotations

from linnet.core.ids import PeerId

MICROSECONDS = 1_000_000


class PeerClocks:
    """For each peer with a link, how far its clock was ahead of ours when it last said the time.

    It does so with each event, and in each answer to a ping.
    """

    def __init__(self) -> None:
        self._ahead: dict[PeerId, float] = {}

    def heard(self, peer: PeerId, sent_us: int, now: float) -> None:
        """It sent something at this time of its own; it was under way for a moment."""
        self._ahead[peer] = sent_us / MICROSECONDS - now

    def gone(self, peer: PeerId) -> None:
        """The link is gone, and what its clock said is old."""
        self._ahead.pop(peer, None)

    def ahead(self) -> tuple[float, ...]:
        """Seconds by which each of them is ahead, in the order of size."""
        return tuple(sorted(self._ahead.values()))
