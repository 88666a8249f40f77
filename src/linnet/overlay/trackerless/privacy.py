"""What this node has told others of its interests, so that its user can see what it adds up to.

Five things tell something: the randomised filter and answers to searches, which are as noisy, once in an
epoch each; private intersections; announcements on local networks; proxies, which must know the topics
that they serve; and addresses, ours and others', which those are told who share a topic with their owner.
Counts are written down, never which topics it was about, and stay on this device. The tables are bounded:
what is oldest is added to `earlier`.
"""

from __future__ import annotations

from hashlib import sha256
from math import exp
from typing import TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from linnet.core.errors import StoreError
from linnet.core.ids import PeerId, TopicId
from linnet.core.stores import Cells
from linnet.overlay.trackerless.intersection import bucket
from linnet.overlay.trackerless.messages import POINTS

SPACE = "privacy"
RELEASES = 128
PEERS = 1024
NETWORKS = 64
PROXIES = 64
TOPICS = 1024
"""Topics that are told apart for one proxy; more are not counted."""
WRITE_PAUSE = 60.0
"""Seconds between writes of the count of announcements, of which there are many: so much a crash may lose."""

_NAME_BYTES = 8


class FilterTold(Struct, gc=False):
    """A randomised filter that everyone may have seen."""

    epoch: int
    network: bytes
    """The local network that it was for; empty for the internet."""
    times: int
    """Releases in this epoch. One is right; with more, their noise can be averaged."""
    epsilon_milli: int
    """Thousandths of epsilon, of all these releases together: the odds that anyone gives to a topic's being
    among ours change by a factor of e^epsilon at most."""
    last: float
    answers_milli: int = 0
    """The same of our answers to searches for topics, which are as noisy: one more release of the epoch."""


class IntersectionsTold(Struct, gc=False):
    """Private intersections with one peer."""

    peer: PeerId
    runs: int
    bucket: int
    """Of our number of topics the peer knows that it is not above this, by the largest run."""
    tested: int
    """Topics that the peer can have asked about at most, whether it follows them or not: it had to be able
    to name them, so none was private to others."""
    common: int
    """Common topics that resulted, of the run with most. The peer knows which, as do we."""
    last: float


class AnnouncementsTold(Struct, gc=False):
    """Announcements on one local network: that there is a node of ours, and nothing of topics."""

    network: bytes
    times: int
    last: float


class ProxyTold(Struct, gc=False):
    """A proxy, which knows our address and the topics that it serves for us, not what is said there."""

    proxy: PeerId
    topics: int
    """How many it was ever asked to serve."""
    last: float


class AddressesTold(Struct, gc=False):
    """A device that shares a topic with us, and was told where we may be dialled, or others who share it."""

    peer: PeerId
    own: int
    """How often it was told our own addresses."""
    others: int
    """How often it was told those of others."""
    last: float


class Earlier(Struct, gc=False):
    """What is no longer told apart. A peer that comes again after it was added here is counted twice."""

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
    """All that was told, the latest last."""

    filters: tuple[FilterTold, ...]
    intersections: tuple[IntersectionsTold, ...]
    announcements: tuple[AnnouncementsTold, ...]
    proxies: tuple[ProxyTold, ...]
    earlier: Earlier
    addresses: tuple[AddressesTold, ...] = ()

    @property
    def epsilon(self) -> float:
        """The epsilon of all releases together: what they tell, at most, of a topic that was in every one."""
        told = sum(one.epsilon_milli + one.answers_milli for one in self.filters)
        return (told + self.earlier.epsilon_milli) / 1000

    @property
    def surest(self) -> float:
        """How sure someone can be of a topic who saw all filters, could name it, and had it at even odds."""
        return 1 / (1 + exp(-self.epsilon))

    @property
    def runs(self) -> int:
        """Intersections with all peers."""
        return sum(one.runs for one in self.intersections) + self.earlier.runs


class _Proxied(Struct, gc=False):
    """As `ProxyTold`, with what is needed to count a topic once."""

    proxy: PeerId
    names: list[bytes]
    last: float


_Told: TypeAlias = FilterTold | IntersectionsTold | AnnouncementsTold | _Proxied | AddressesTold
_T = TypeVar("_T", FilterTold, IntersectionsTold, AnnouncementsTold, _Proxied, AddressesTold, Earlier)

_FILTER, _INTERSECTION, _ANNOUNCEMENT, _PROXY, _ADDRESSES, _EARLIER = b"f", b"i", b"a", b"p", b"d", b"e"
_encode = msgspec.msgpack.Encoder().encode


class Budget:
    """Keeps the account, over restarts."""

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

    def released(self, epoch: int, epsilon: float, now: float, network: bytes = b"") -> None:
        """A filter was released. Call it once for each; it is not for showing the same one again."""
        key = epoch.to_bytes(8, "big") + network
        told = self._filters.pop(key, None) or FilterTold(epoch, network, 0, 0, now)
        told.times += 1
        told.epsilon_milli += round(epsilon * 1000)
        told.last = now
        self._filters[key] = told
        self._write(_FILTER, key, told)
        self._fold_filters()

    def answered(self, epoch: int, epsilon: float, now: float) -> None:
        """A search for members was answered, or not, which tells as much. It counts once in an epoch."""
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
        while len(self._filters) > RELEASES:
            old = self._filters.pop(oldest := next(iter(self._filters)))
            self._earlier.releases += old.times
            self._earlier.epsilon_milli += old.epsilon_milli + old.answers_milli
            self._fold(_FILTER, oldest)

    def intersected(self, peer: PeerId, topics: int, common: int, now: float, tested: int = POINTS) -> None:
        """An intersection was run to its end, with so many topics of ours and `tested` points of theirs."""
        told = self._intersections.pop(peer, None) or IntersectionsTold(peer, 0, 0, 0, 0, now)
        told.runs += 1
        told.bucket = max(told.bucket, bucket(topics))
        told.tested += tested
        told.common = max(told.common, common)
        told.last = now
        self._intersections[peer] = told
        self._write(_INTERSECTION, peer, told)
        while len(self._intersections) > PEERS:
            old = self._intersections.pop(oldest := next(iter(self._intersections)))
            self._earlier.peers += 1
            self._earlier.runs += old.runs
            self._fold(_INTERSECTION, oldest)

    def announced(self, network: bytes, now: float) -> None:
        """We announced ourselves on a local network."""
        told = self._announcements.pop(network, None) or AnnouncementsTold(network, 0, now)
        told.times += 1
        told.last = now
        self._announcements[network] = told
        if abs(now - self._written.get(network, -WRITE_PAUSE)) >= WRITE_PAUSE:
            self._written[network] = now
            self._write(_ANNOUNCEMENT, network, told)
        while len(self._announcements) > NETWORKS:
            old = self._announcements.pop(oldest := next(iter(self._announcements)))
            self._earlier.networks += 1
            self._earlier.announcements += old.times
            self._written.pop(oldest, None)
            self._fold(_ANNOUNCEMENT, oldest)

    def served(self, proxy: PeerId, topic: TopicId, now: float) -> None:
        """A proxy was asked to serve a topic; each counts once."""
        told = self._proxies.get(proxy) or _Proxied(proxy, [], now)
        name = sha256(topic).digest()[:_NAME_BYTES]
        if name in told.names or len(told.names) >= TOPICS:
            return
        told.names.append(name)
        told.last = now
        self._proxies.pop(proxy, None)
        self._proxies[proxy] = told
        self._write(_PROXY, proxy, told)
        while len(self._proxies) > PROXIES:
            del self._proxies[oldest := next(iter(self._proxies))]
            self._earlier.proxies += 1
            self._fold(_PROXY, oldest)

    def located(self, peer: PeerId, own: bool, now: float) -> None:
        """A device was told where we may be dialled, or another."""
        told = self._addresses.pop(peer, None) or AddressesTold(peer, 0, 0, now)
        told.own += own
        told.others += not own
        told.last = now
        self._addresses[peer] = told
        self._write(_ADDRESSES, peer, told)
        while len(self._addresses) > PEERS:
            del self._addresses[oldest := next(iter(self._addresses))]
            self._earlier.told += 1
            self._fold(_ADDRESSES, oldest)

    def flush(self) -> None:
        """Write what was counted since; before the end."""
        for network, told in self._announcements.items():
            self._write(_ANNOUNCEMENT, network, told)

    def per_peer(self, peer: PeerId) -> IntersectionsTold | None:
        """What intersections told one peer."""
        return self._intersections.get(peer)

    def told(self) -> BudgetIs:
        """All of it, as it stands."""
        return BudgetIs(
            tuple(msgspec.structs.replace(one) for one in self._filters.values()),
            tuple(msgspec.structs.replace(one) for one in self._intersections.values()),
            tuple(msgspec.structs.replace(one) for one in self._announcements.values()),
            tuple(ProxyTold(one.proxy, len(one.names), one.last) for one in self._proxies.values()),
            msgspec.structs.replace(self._earlier),
            tuple(msgspec.structs.replace(one) for one in self._addresses.values()),
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

    def _fold(self, kind: bytes, key: bytes) -> None:
        """What this entry said was added to what was earlier."""
        self._cells.delete(SPACE, kind + key)
        self._write(_EARLIER, b"", self._earlier)
