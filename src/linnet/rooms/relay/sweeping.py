"""Letting go of a room that is not served any more, a bounded part at a time, with records."""

from __future__ import annotations

from linnet.core.reasons import Reason
from linnet.rooms.relay.chunks import Chunks
from linnet.rooms.relay.event_cache import Cache
from linnet.rooms.relay.receipts import KeptReceipts


class Sweeping:
    """What is left of one room. It needs no control DAG, which may be gone in part after a restart."""

    def __init__(self, cache: Cache, receipts: KeptReceipts, chunks: Chunks) -> None:
        self._cache = cache
        self._receipts = receipts
        self._chunks = chunks

    def forget_some(self) -> bool:
        """Let go of some of it; returns False if nothing was left."""
        self._receipts.retain(frozenset())
        had_chunks = self._chunks.expire_before(float("inf"), Reason.NOT_A_RELAY)
        return self._cache.forget_some(Reason.NOT_A_RELAY) or had_chunks
