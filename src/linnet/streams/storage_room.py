"""The room that a node has for what it keeps for others, shared by all its streams.

Without quotas of their own, streams are bounded one by one and in all, and some of the disk stays free for
the node itself. What is full refuses the newest events and loses none of the older ones. The last quarter of
the room is not for the network that has stored most since the node started: keys are free, and one publisher
must not use up what others need.
"""

from __future__ import annotations

from linnet.core.fair_shares import FairShares
from linnet.core.ids import PeerId, TopicId
from linnet.core.limits import MIB
from linnet.core.reasons import Reason
from linnet.delivery.context import Context

MARGIN = MIB
"""Bytes that must be free again before a stream that refused events takes them: about four of the largest."""


class StorageRoom:
    """Counts what is kept for others, and says what is refused."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._kept: dict[TopicId, int] = {}
        self._total = 0
        self._shares = FairShares(context.config.stored_bytes, context.origins)

    def count(self, topic: TopicId, is_kept: bool = True) -> None:
        """Count how much a stream takes now; one that is not kept for others counts nothing."""
        now = self._context.store.log.kept(topic).bytes if is_kept else 0
        self._total += now - self._kept.pop(topic, 0)
        if now:
            self._kept[topic] = now

    def recount(self, topic: TopicId) -> None:
        """Count a stream anew after an eviction, if it is kept for others."""
        if topic in self._kept:
            self.count(topic)

    def note_stored(self, topic: TopicId, device: PeerId, size: int) -> None:
        """Count a unit of this device that was written."""
        self._shares.add(device, size)
        self.count(topic)

    def why_refused(self, topic: TopicId, device: PeerId, size: int, is_bounded: bool) -> Reason | None:
        """Return why a unit of a device is not taken; None: there is room.

        `is_bounded` says that the stream has a quota, which evicts its oldest events instead.
        """
        config = self._context.config
        if self._total + size > config.stored_bytes:
            return Reason.QUOTA
        stream = self._kept.get(topic, 0) + size
        if not is_bounded and stream > config.stored_stream_bytes:
            return Reason.QUOTA
        free = self._context.store.free_bytes
        if free is not None and free - size < config.disk_reserve:
            return Reason.DISK_FULL
        if not len(self._shares):
            return None
        is_scarce = 4 * (self._total + size) > 3 * config.stored_bytes or (
            not is_bounded and 4 * stream > 3 * config.stored_stream_bytes
        )
        if not is_scarce:
            return None
        greedier, origins = self._shares.find_greedier(device, size), self._context.origins
        is_greediest = greedier is None or origins.of(greedier) == origins.of(device)
        return Reason.QUOTA if is_greediest else None
