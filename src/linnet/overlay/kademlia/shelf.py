"""Records of others that this node keeps: bounded for all, each key and each giver, and written down."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from linnet.core.errors import RemoteError, StoreError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.overlay.kademlia.ids import NodeId
from linnet.overlay.kademlia.records import LEEWAY, Stored, check_record

SPACE = "kademlia kept"


class _Kept(NamedTuple):
    giver: bytes
    until: int
    """When it goes, unless it is handed over again."""
    record: Stored


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(_Kept)


class Shelf:
    """For each key the newest record of each owner. What is there stays: no stranger can push it out."""

    def __init__(self, cells: Cells, config: KademliaConfig) -> None:
        self._cells = cells
        self._config = config
        self._kept: dict[NodeId, dict[bytes, _Kept]] = {}
        self._given: dict[bytes, int] = {}
        self._count = 0
        for _, raw in cells.scan(SPACE):
            self._add(_read(raw))

    def __len__(self) -> int:
        return self._count

    def find(self, key: NodeId, now: float) -> tuple[Stored, ...]:
        """All that is good under a key."""
        kept = self._kept.get(key, {}).values()
        return tuple(each.record for each in kept if min(each.until, each.record.expires) > now)

    def put(self, record: Stored, giver: PeerId, now: float) -> Reason | None:
        """Keep a record that somebody gave; None if it is kept now, or why not."""
        known = self._kept.get(record.key, {}).get(record.owner)
        # What our own clock let in while it was ahead gives way to what is true now.
        is_early = known is not None and known.record.version > (now + LEEWAY) * 1000
        if known is not None and known.record.version > record.version and not is_early:
            return Reason.STALE
        if known is None and (refusal := self._full(record.key, giver)) is not None:
            return refusal
        if known is None or known.record != record:
            try:
                check_record(record, now)
            except RemoteError as error:
                return error.reason
            if known is not None and known.record.version == record.version:
                # Two of one version: an owner that says two things. The first stays.
                return Reason.EQUIVOCATION
        elif record.expires <= now:
            return Reason.STALE
        if known is not None:
            self._drop(known.record)
        kept = _Kept(giver, min(record.expires, int(now + self._config.lifetime)), record)
        self._add(kept)
        self._cells.put(SPACE, record.key + record.owner, _encode(kept))
        return None

    def sweep(self, now: float) -> int:
        """Forget what is over; how many."""
        over = [each.record for under in self._kept.values() for each in under.values() if each.until <= now]
        for record in over:
            self._drop(record)
        return len(over)

    def _full(self, key: NodeId, giver: PeerId) -> Reason | None:
        if len(self._kept.get(key, {})) >= self._config.candidates:
            return Reason.TOO_MANY
        is_full = self._count >= self._config.records
        return Reason.QUOTA if is_full or self._given.get(giver, 0) >= self._config.giver_records else None

    def _add(self, kept: _Kept) -> None:
        self._kept.setdefault(kept.record.key, {})[kept.record.owner] = kept
        self._given[kept.giver] = self._given.get(kept.giver, 0) + 1
        self._count += 1

    def _drop(self, record: Stored) -> None:
        under = self._kept[record.key]
        giver = under.pop(record.owner).giver
        if not under:
            del self._kept[record.key]
        self._given[giver] -= 1
        if not self._given[giver]:
            del self._given[giver]
        self._count -= 1
        self._cells.delete(SPACE, record.key + record.owner)


def _read(raw: bytes) -> _Kept:
    try:
        return _decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StoreError(f"a record of the network cannot be read: {error}") from error
