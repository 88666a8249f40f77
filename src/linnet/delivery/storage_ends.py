"""How far each storage node says that it keeps the chains of a topic, compared with what was shown.

Readers ask all storage nodes before they read one (`linnet.delivery.catch_up`).
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from linnet.core.ids import AuthorId, DeviceId, PeerId, TopicId
from linnet.delivery.chain import ChainKey, Range
from linnet.delivery.items import StorageDiffers, StorageTold
from linnet.delivery.messages import Kept

_DEVICE = 8
"""Bytes of a device id, the end of a chain's key."""
_MOST_TOLD = 8
"""Chains about which an application is told that storage nodes differ; of the others, how many they are."""


class Ends:
    """How far each storage node of a topic says that it keeps the chains, and what was shown of that."""

    def __init__(self, most: int) -> None:
        self._most = most
        """The most chains that a topic may have: who names more of them has no more to say."""
        self.asked: dict[PeerId, None] = {}
        self.awaited: dict[PeerId, None] = {}
        """Those that were asked and have not answered."""
        self.stated: dict[PeerId, dict[ChainKey, Range]] = {}
        """The ranges of the chains, by storage node that has answered."""
        self.first_pages: dict[PeerId, Kept] = {}
        """The first page of each storage node's answer, as it was signed."""
        self._pages: dict[PeerId, dict[ChainKey, Range]] = {}
        self.shown: dict[ChainKey, int] = {}
        """The number behind the last event of each chain that any storage node has shown."""
        self._excess: dict[ChainKey, dict[PeerId, int]] = {}
        self._judged: dict[ChainKey, int] | None = None

    def take(self, peer: PeerId, kept: Kept) -> bool:
        """Take in a page of an answer; return whether it was the last one."""
        self.first_pages.setdefault(peer, kept)
        ranges = self._pages.setdefault(peer, {})
        for place in kept.chains:
            ranges[place.author + place.device] = place.first, place.last
        if not kept.done and len(ranges) < self._most:
            return False
        self.stated[peer] = self._pages.pop(peer)
        self.awaited.pop(peer, None)
        return True

    def count(self, peer: PeerId) -> int:
        """Return how many events a storage node says that it keeps."""
        return sum(max(0, last - first + 1) for first, last in self.stated.get(peer, {}).values())

    def has_more(self, peer: PeerId, reached: dict[ChainKey, int]) -> bool:
        """Return whether a storage node says that it keeps events behind those that were handed over."""
        ranges = self.stated.get(peer, {})
        return any(first <= last and last >= reached.get(key, first) for key, (first, last) in ranges.items())

    def first_of(self, key: ChainKey, peers: Iterable[PeerId]) -> int | None:
        """Return the first number of a chain that any of these storage nodes says it keeps."""
        found = [self.stated[peer][key] for peer in peers if key in self.stated.get(peer, {})]
        return min((first for first, last in found if first <= last), default=None)

    def covers(self, key: ChainKey, number: int, peers: Iterable[PeerId]) -> bool:
        """Return whether any of these storage nodes says that it keeps this event."""
        found = [self.stated.get(peer, {}).get(key) for peer in peers]
        return any(each is not None and each[0] <= number <= each[1] for each in found)

    def judge(self, reached: dict[ChainKey, int]) -> tuple[PeerId, ...]:
        """Compare what was stated with what was shown; return the storage nodes that keep less.

        `reached` is the number behind what was handed over of each chain: our own log may have shown it.
        """
        self._judged = dict(self.shown)
        for peer, ranges in self.stated.items():
            for key, (first, last) in ranges.items():
                if first <= last and last >= max(self.shown.get(key, 0), reached.get(key, 0)):
                    self._excess.setdefault(key, {})[peer] = last
        return self.lacking()

    def lacking(self) -> tuple[PeerId, ...]:
        """Return the storage nodes that keep less than was shown when they were judged."""
        judged = self._judged or {}
        return tuple(peer for peer in self.stated if self._lacks_any(peer, judged))

    def _lacks_any(self, peer: PeerId, shown: dict[ChainKey, int]) -> bool:
        ranges = self.stated[peer]
        return any(ranges.get(key, (0, -1))[1] < upto - 1 for key, upto in shown.items())

    def differences(self, topic: TopicId) -> list[StorageDiffers]:
        """Return what to tell of the storage nodes that kept less or showed less than they said."""
        told: list[StorageDiffers] = []
        judged = self._judged or {}
        count = 0
        for key in dict.fromkeys((*judged, *self._excess)):
            upto = judged.get(key, 0)
            lasts = {peer: ranges[key][1] if key in ranges else None for peer, ranges in self.stated.items()}
            excess = self._excess.get(key, {})
            if not excess and all(last is not None and last >= upto - 1 for last in lasts.values()):
                continue
            count += 1
            if len(told) < _MOST_TOLD:
                nodes = tuple(StorageTold(peer, last) for peer, last in {**lasts, **excess}.items())
                author, device = AuthorId(key[:-_DEVICE]), DeviceId(key[-_DEVICE:])
                told.append(StorageDiffers(topic, author, device, upto - 1 if upto else None, nodes))
        if count > len(told):
            told[-1] = replace(told[-1], others=count - len(told))
        return told
