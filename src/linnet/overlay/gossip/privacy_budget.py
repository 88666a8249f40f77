"""The privacy budget: what this node has told others of its interests, so that its user sees what it adds up
to.

Five things disclose something: the randomised filter and answers to searches, which are as noisy, once in an
epoch each; private intersections; announcements on local networks; proxies, which must know the topics that
they serve; and addresses, ours and others', which peers are told that share a topic with their owner. Counts
are stored, never the topics, and stay on this device. The tables are bounded: the oldest entries are added to
`earlier`.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from math import exp
from typing import TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from linnet.core.errors import StoreError
from linnet.core.ids import PeerId, TopicId
from linnet.core.stores import Cells
from linnet.machine.commands import Hex
from linnet.overlay.gossip.messages import POINTS
from linnet.overlay.gossip.private_set_intersection import bucket_of

SPACE = "privacy"
RELEASES = 128
PEERS = 1024
NETWORKS = 64
PROXIES = 64
TOPICS = 1024
"""Topics that are counted for one proxy; more are not counted."""
WRITE_PAUSE = 60.0
"""Seconds between writes of the count of announcements, which are many: a crash may lose so much."""

_NAME_BYTES = 8


class FilterTold(Struct, gc=False):
    """A randomised filter that anyone may have seen."""

    epoch: int
    network: Hex
    """The local network that the filter was for; empty for the internet."""
    times: int
    """Releases in this epoch. One is right; with more, their noise can be averaged."""
    epsilon_milli: int
    """Thousandths of epsilon, of all these releases together: the odds that anyone gives to a topic's being
    among ours change by a factor of e^epsilon at most."""
    last: float
    answers_milli: int = 0
    """Thousandths of epsilon of our answers to searches for topics, which are as noisy: one more release of
    the epoch."""


class IntersectionsTold(Struct, gc=False):
    """Private intersections with one peer."""

    peer: PeerId
    runs: int
    bucket: int
    """An upper bound for our number of topics that the peer knows, by the largest run."""
    tested: int
    """The most topics that the peer can have asked about, whether it follows them or not: it had to be able
    to name them, so none was private to others."""
    common: int
    """Common topics found by the run with most. The peer knows them, as do we."""
    last: float


class AnnouncementsTold(Struct, gc=False):
    """Announcements on one local network: they show that there is a node of ours, and nothing of topics."""

    network: Hex
    times: int
    last: float


class ProxyTold(Struct, gc=False):
    """A proxy, which knows our address and the topics that it serves for us, not their events."""

    proxy: PeerId
    topics: int
    """How many topics it was ever asked to serve."""
    last: float


class AddressesTold(Struct, gc=False):
    """A device that shares a topic with us, and was told our addresses, or those of others that share it."""

    peer: PeerId
    own: int
    """How often it was told our own addresses."""
    others: int
    """How often it was told the addresses of others."""
    last: float


class Earlier(Struct, gc=False):
    """Sums of old entries. A peer that comes again after it was added here is counted twice."""

    releases: int = 0
    epsilon_milli: int = 0
    peers: int = 0
    runs: int = 0
    networks: int = 0
    announcements: int = 0
    proxies: int = 0
    told: int = 0
    """Devices that were told addresses."""


class BudgetIs(Struct, frozen=True, gc=False):
    """All that was disclosed, the latest last."""

    filters: tuple[FilterTold, ...]
    intersections: tuple[IntersectionsTold, ...]
    announcements: tuple[AnnouncementsTold, ...]
    proxies: tuple[ProxyTold, ...]
    earlier: Earlier
    addresses: tuple[AddressesTold, ...] = ()
    epsilon: float = 0.0
    """The epsilon of all releases together: the most that they disclose of a topic that was in every one."""
    surest: float = 0.5
    """How sure an observer can be of a topic that saw all filters, could name it, and gave it even odds
    before."""
    runs: int = 0
    """Intersections with all peers."""


class _Proxied(Struct, gc=False):
    """Like `ProxyTold`, with hashes by which a topic is counted once."""

    proxy: PeerId
    names: list[bytes]
    last: float


_Told: TypeAlias = FilterTold | IntersectionsTold | AnnouncementsTold | _Proxied | AddressesTold
_T = TypeVar("_T", FilterTold, IntersectionsTold, AnnouncementsTold, _Proxied, AddressesTold, Earlier)

_FILTER, _INTERSECTION, _ANNOUNCEMENT, _PROXY, _ADDRESSES, _EARLIER = b"f", b"i", b"a", b"p", b"d", b"e"
_encode = msgspec.msgpack.Encoder().encode


class PrivacyBudget:
    """Keeps the privacy budget, across restarts."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._filters = self._load(_FILTER, FilterTold)
        self._intersections = self._load(_INTERSECTION, IntersectionsTold)
        self._announcements = self._load(_ANNOUNCEMENT, AnnouncementsTold)
        self._proxies = self._load(_PROXY, _Proxied)
        self._addresses = self._load(_ADDRESSES, AddressesTold)
        self._earlier = self._load(_EARLIER, Earlier).get(b"", Earlier())
        self._written: dict[bytes, float] = {}
        """When the count of announcements on a network was last written."""

    def enter_release(self, epoch: int, epsilon: float, now: float, network: bytes = b"") -> None:
        """Enter the release of a filter. Call it once for each; showing the same filter again does not
        count."""
        key = epoch.to_bytes(8, "big") + network
        told = self._filters.pop(key, None) or FilterTold(epoch, network, 0, 0, now)
        told.times += 1
        told.epsilon_milli += round(epsilon * 1000)
        told.last = now
        self._filters[key] = told
        self._write(_FILTER, key, told)
        self._fold_filters()

    def enter_answers(self, epoch: int, epsilon: float, now: float) -> None:
        """Enter the answers to searches for members; silence tells as much. They count once in an epoch."""
        key = epoch.to_bytes(8, "big")
        told = self._filters.get(key)
        if told is None:
            told = self._filters[key] = FilterTold(epoch, b"", 0, 0, now)
        if told.answers_milli:
            return
        told.answers_milli = round(epsilon * 1000)
        self._write(_FILTER, key, told)
        self._fold_filters()

    def _fold_filters(self) -> None:
        for old in self._fold(_FILTER, self._filters, RELEASES):
            self._earlier.releases += old.times
            self._earlier.epsilon_milli += old.epsilon_milli + old.answers_milli

    def enter_intersection(
        self, peer: PeerId, topics: int, common: int, now: float, tested: int = POINTS
    ) -> None:
        """Enter a completed intersection, with so many topics of ours and `tested` points of the peer."""
        told = self._intersections.pop(peer, None) or IntersectionsTold(peer, 0, 0, 0, 0, now)
        told.runs += 1
        told.bucket = max(told.bucket, bucket_of(topics))
        told.tested += tested
        told.common = max(told.common, common)
        told.last = now
        self._intersections[peer] = told
        self._write(_INTERSECTION, peer, told)
        for old in self._fold(_INTERSECTION, self._intersections, PEERS):
            self._earlier.peers += 1
            self._earlier.runs += old.runs

    def enter_announcement(self, network: bytes, now: float) -> None:
        """Enter an announcement of this node on a local network."""
        told = self._announcements.pop(network, None) or AnnouncementsTold(network, 0, now)
        told.times += 1
        told.last = now
        self._announcements[network] = told
        if abs(now - self._written.get(network, -WRITE_PAUSE)) >= WRITE_PAUSE:
            self._written[network] = now
            self._write(_ANNOUNCEMENT, network, told)
        for old in self._fold(_ANNOUNCEMENT, self._announcements, NETWORKS):
            self._earlier.networks += 1
            self._earlier.announcements += old.times
            self._written.pop(old.network, None)

    def enter_service(self, proxy: PeerId, topic: TopicId, now: float) -> None:
        """Enter that a proxy was asked to serve a topic; each counts once."""
        told = self._proxies.get(proxy) or _Proxied(proxy, [], now)
        name = sha256(topic).digest()[:_NAME_BYTES]
        if name in told.names or len(told.names) >= TOPICS:
            return
        told.names.append(name)
        told.last = now
        self._proxies.pop(proxy, None)
        self._proxies[proxy] = told
        self._write(_PROXY, proxy, told)
        for _ in self._fold(_PROXY, self._proxies, PROXIES):
            self._earlier.proxies += 1

    def enter_address(self, peer: PeerId, own: bool, now: float) -> None:
        """Enter that a device was told our own address, or that of another."""
        told = self._addresses.pop(peer, None) or AddressesTold(peer, 0, 0, now)
        told.own += own
        told.others += not own
        told.last = now
        self._addresses[peer] = told
        self._write(_ADDRESSES, peer, told)
        for _ in self._fold(_ADDRESSES, self._addresses, PEERS):
            self._earlier.told += 1

    def flush(self) -> None:
        """Write the counts that were not written yet; to be called before the end."""
        for network, told in self._announcements.items():
            self._write(_ANNOUNCEMENT, network, told)

    def report(self) -> BudgetIs:
        """Return the whole budget as it stands."""
        filters, earlier = self._filters.values(), self._earlier
        told = sum(one.epsilon_milli + one.answers_milli for one in filters) + earlier.epsilon_milli
        return BudgetIs(
            tuple(msgspec.structs.replace(one) for one in filters),
            tuple(msgspec.structs.replace(one) for one in self._intersections.values()),
            tuple(msgspec.structs.replace(one) for one in self._announcements.values()),
            tuple(ProxyTold(one.proxy, len(one.names), one.last) for one in self._proxies.values()),
            msgspec.structs.replace(earlier),
            tuple(msgspec.structs.replace(one) for one in self._addresses.values()),
            told / 1000,
            1 / (1 + exp(-told / 1000)),
            sum(one.runs for one in self._intersections.values()) + earlier.runs,
        )

    def _load(self, kind: bytes, type_: type[_T]) -> dict[bytes, _T]:
        found: dict[bytes, _T] = {}
        for key, raw in self._cells.scan(SPACE):
            if key[:1] == kind:
                try:
                    found[key[1:]] = msgspec.msgpack.decode(raw, type=type_)
                except msgspec.MsgspecError as error:
                    raise StoreError("the stored account of what was told is damaged") from error
        return dict(sorted(found.items(), key=lambda item: getattr(item[1], "last", 0.0)))

    def _write(self, kind: bytes, key: bytes, told: _Told | Earlier) -> None:
        self._cells.put(SPACE, kind + key, _encode(told))

    def _fold(self, kind: bytes, kept: dict[bytes, _T], most: int) -> Iterator[_T]:
        """Yield the oldest entries beyond the limit: the caller adds each to `earlier`, which is then
        written."""
        while len(kept) > most:
            old = kept.pop(oldest := next(iter(kept)))
            yield old
            self._cells.delete(SPACE, kind + oldest)
            self._write(_EARLIER, b"", self._earlier)
