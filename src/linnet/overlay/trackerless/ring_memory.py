"""Members of our rings, written down: after a restart a node turns to those, and need not search."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from linnet.core.errors import RemoteError, StoreError
from linnet.core.ids import TopicId
from linnet.core.stores import Cells
from linnet.overlay.trackerless.descriptor import DescriptorCheck
from linnet.overlay.trackerless.messages import RingMember
from linnet.overlay.trackerless.tags import TopicKeys, is_proof

SPACE = "trackerless rings"
MEMBERS = 8
"""Of one ring that are written down."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[RingMember, ...]).decode


class RingMemory:
    """What is written down of the rings of a node. It is as secret as the list of its topics."""

    def __init__(self, cells: Cells, check: DescriptorCheck) -> None:
        self._cells = cells
        self._check = check
        self._written: dict[TopicId, tuple[RingMember, ...]] = {}
        """What was written in this life, so that it is not written again."""

    def keep(self, topic: TopicId, members: Iterable[RingMember]) -> None:
        """These stand beside us, the nearest first. Nobody: what was known stays, it may be the network."""
        kept = tuple(members)[:MEMBERS]
        if kept and self._written.get(topic) != kept:
            self._written[topic] = kept
            self._cells.put(SPACE, topic, _encode(kept))

    def forget(self, topic: TopicId) -> None:
        """We are in this topic no more."""
        self._written.pop(topic, None)
        self._cells.delete(SPACE, topic)

    def recall(self, keys: TopicKeys, epoch: int, now: float) -> list[RingMember]:
        """Those that were written down, as far as what they said of themselves has not ended."""
        raw = self._cells.get(SPACE, keys.topic)
        if raw is None:
            return []
        try:
            kept = _decode(raw)
        except msgspec.MsgspecError as error:
            raise StoreError("the stored members of a ring are damaged") from error
        return [member for member in kept if self._holds(keys, member, epoch, now)]

    def _holds(self, keys: TopicKeys, member: RingMember, epoch: int, now: float) -> bool:
        if abs(member.epoch - epoch) > 1 or not is_proof(keys, member.node.peer, member.epoch, member.proof):
            return False
        try:
            self._check(member.node, now)
        except RemoteError:
            # It was right when it was written down, and has ended since.
            return False
        return True
