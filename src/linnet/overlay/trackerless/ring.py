"""One topic's ring at one node: its members in order, as far as they are known, and who is next on each side.

All members of a topic stand on a circle of 2^256 places (Voulgaris, van Steen 2007; Setty et al. 2012). The
known ones are kept in the order in which they follow us clockwise, so the first are our successors and the
last our predecessors, and the wrap needs no case of its own. Beside the nearest, some members are kept at
random: they are the shortcuts.

Whoever was only heard of may be invented. It is tried, but it displaces nobody who spoke with us: what counts
as next on a side is the nearest that was met, and the nearest of those stay known whoever is said to stand
between.
"""

from __future__ import annotations

import hmac
from bisect import bisect_left
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from heapq import nlargest
from random import Random

from linnet.core.ids import PeerId
from linnet.overlay.trackerless.config import RingOrder, TrackerlessConfig
from linnet.overlay.trackerless.messages import RingMember
from linnet.overlay.trackerless.tags import TopicKeys

KNOWN = 64
"""Members of one ring that are known at once."""

QUIET = 64
"""Events in a row that a neighbour brings none of first, before another is sent them as well."""

_CALM = 8
"""Exchanges without a change after which a ring is taken to have formed, and less is told."""

_PLACES = 1 << 256
_POSITION = b"linnet/overlay/position/1"

Rank = Callable[[PeerId], int]
"""Lots that a node draws for others, the same in all its rings: the lowest are its shortcuts."""


def position(peer: PeerId, keys: TopicKeys, epoch: int, order: RingOrder) -> int:
    """Where a peer stands on the ring of a topic."""
    if order is RingOrder.ID:
        return int.from_bytes(peer, "big")
    hashed = hmac.digest(keys.ring, _POSITION + epoch.to_bytes(8, "big") + peer, "sha256")
    return int.from_bytes(hashed, "big")


class Ring:
    """The members of one topic that a node knows. What is merged into it has been checked."""

    __slots__ = (
        "_bar",
        "_keepers",
        "_limit",
        "_members",
        "_met",
        "_neighbors",
        "_offsets",
        "_order",
        "_origin",
        "_ours",
        "_peers",
        "_quiet",
        "_rank",
        "_shortcuts",
        "_spares",
        "_wanted",
        "calm",
        "epoch",
        "keys",
    )

    def __init__(
        self,
        ours: PeerId,
        keys: TopicKeys,
        config: TrackerlessConfig,
        epoch: int,
        rank: Rank,
        limit: int = KNOWN,
    ) -> None:
        self._ours = ours
        self.keys = keys
        self.epoch = epoch
        self._order = config.ring_order
        self._spares = config.spares
        self._shortcuts = config.shortcuts
        self._rank = rank
        self._limit = max(limit, 4 * config.spares + config.shortcuts)
        self._origin = position(ours, keys, epoch, self._order)
        self._offsets: list[int] = []
        """How far clockwise of us each known member stands, rising; `_peers` has the same order."""
        self._peers: list[PeerId] = []
        self._members: dict[PeerId, RingMember] = {}
        self._met: dict[PeerId, None] = {}
        self._quiet: dict[PeerId, int] = {}
        """How many events in a row came first from someone else, for each of the two next to us."""
        self._neighbors: tuple[PeerId, ...] | None = ()
        self._wanted: tuple[PeerId, ...] | None = ()
        self._keepers: tuple[PeerId, ...] | None = ()
        self._bar: int | None = None
        """The lowest lot of those that were let go for want of room, while there is none."""
        self.calm = 0
        """Exchanges about this ring in a row that changed none of our neighbours."""

    def __len__(self) -> int:
        return len(self._peers)

    def __contains__(self, peer: PeerId) -> bool:
        return peer in self._members

    def __iter__(self) -> Iterator[PeerId]:
        return iter(self._peers)

    def get(self, peer: PeerId) -> RingMember | None:
        """What is known of a member."""
        return self._members.get(peer)

    def is_met(self, peer: PeerId) -> bool:
        """Whether a member spoke with us itself."""
        return peer in self._met

    def has_room_for(self, peer: PeerId) -> bool:
        """Whether a member that is not known would stay known: on a full ring one nearby, or of a low lot."""
        if self._bar is None or self._rank(peer) < self._bar:
            return True
        at = bisect_left(self._offsets, self._offset(peer))
        return at < self._spares or len(self._offsets) - at < self._spares

    @property
    def keepers(self) -> tuple[PeerId, ...]:
        """Members that keep the topic, in the order of their places."""
        if self._keepers is None:
            members = self._members
            self._keepers = tuple([peer for peer in self._peers if members[peer].keeps])
        return self._keepers

    @property
    def successors(self) -> tuple[PeerId, ...]:
        """The nearest known members clockwise, the nearest first."""
        return tuple(self._peers[: self._spares])

    @property
    def predecessors(self) -> tuple[PeerId, ...]:
        """The nearest known members counter-clockwise, the nearest first."""
        return tuple(self._peers[: -self._spares - 1 : -1])

    @property
    def is_calm(self) -> bool:
        """Whether it has formed, as far as can be told: exchanges change nothing any more."""
        return self.calm >= _CALM

    @property
    def missing(self) -> int:
        """How many neighbours a node on a ring of many members would have beyond those that are known."""
        return max(0, 2 * self._spares - len(self._peers))

    @property
    def neighbors(self) -> tuple[PeerId, ...]:
        """The nearest on both sides, and the nearest of those that were met, each once."""
        if self._neighbors is None:
            ahead, back = self._peers, self._peers[::-1]
            near: dict[PeerId, None] = {}
            for side in (ahead, back):
                near.update(dict.fromkeys(side[: self._spares]))
            for side in (ahead, back):
                near.update(dict.fromkeys(self._nearest_met(side)))
            self._neighbors = tuple(near)
        return self._neighbors

    @property
    def wanted(self) -> tuple[PeerId, ...]:
        """Whom the topic wants links to: the neighbours, then the shortcuts."""
        if self._wanted is None:
            near = self.neighbors
            far = [peer for peer in self._peers if peer not in near]
            far.sort(key=self._rank)
            self._wanted = (*near, *far[: self._shortcuts])
        return self._wanted

    @property
    def shortcuts(self) -> tuple[PeerId, ...]:
        """Members far off, drawn by lot once: they change only when a lower lot turns up, or one is gone."""
        return self.wanted[len(self.neighbors) :]

    def successor(self, up: Container[PeerId]) -> PeerId | None:
        """Who of those that are up is next clockwise: the nearest that was met, or a spare; None: a gap."""
        return self._next(self._peers, up)

    def predecessor(self, up: Container[PeerId]) -> PeerId | None:
        """Who is next counter-clockwise among those that are up; None: a gap."""
        return self._next(reversed(self._peers), up)

    def beyond(self, up: Container[PeerId], ahead: bool) -> PeerId | None:
        """Whom to ask about a gap on a side: the first member there that is up, however far off."""
        side: Iterable[PeerId] = self._peers if ahead else reversed(self._peers)
        return next((peer for peer in side if peer in up), None)

    def heard(self, sources: Container[PeerId], beside: Iterable[PeerId | None]) -> None:
        """An event came from these; so many more came from elsewhere than from the two next to us."""
        quiet = self._quiet
        self._quiet = {
            peer: 0 if peer in sources else quiet.get(peer, 0) + 1 for peer in beside if peer is not None
        }

    def is_quiet(self, peer: PeerId) -> bool:
        """Whether one next to us has brought no event for long: perhaps it passes nothing on."""
        return self._quiet.get(peer, 0) >= QUIET

    def merge(self, members: Collection[RingMember], met: PeerId | None = None) -> bool:
        """Take in members that were checked; `met` is the one that spoke. True if our neighbours changed."""
        if not members and (met is None or met in self._met):
            self.calm += 1
            return False
        before = self.neighbors
        if met is not None and met in self._members and met not in self._met:
            self._meet(met)
        for member in members:
            peer = member.node.peer
            known = self._members.get(peer)
            if known is not None:
                newer = self._members[peer] = _newer(known, member)
                if newer.keeps != known.keeps:
                    self._keepers = None
            elif peer != self._ours:
                self._insert(peer, member)
            if peer == met and peer in self._members and peer not in self._met:
                self._meet(peer)
        if len(self._peers) > self._limit:
            self._trim()
        changed = self.neighbors != before
        self.calm = 0 if changed else self.calm + 1
        return changed

    def drop(self, peer: PeerId) -> RingMember | None:
        """A member is gone, or does not answer; returns what was known of it."""
        member = self._members.pop(peer, None)
        if member is None:
            return None
        at = self._peers.index(peer)
        del self._peers[at], self._offsets[at]
        self._met.pop(peer, None)
        self._neighbors = self._wanted = self._keepers = self._bar = None
        self.calm = 0
        return member

    def turn(self, epoch: int) -> list[PeerId]:
        """A new epoch: places change if they are hashes; whoever's proof is too old goes, and is returned."""
        if epoch == self.epoch:
            return []
        self.epoch = epoch
        past = [peer for peer, member in self._members.items() if abs(member.epoch - epoch) > 1]
        for peer in past:
            self.drop(peer)
        if self._order is RingOrder.HASH:
            self._origin = position(self._ours, self.keys, epoch, self._order)
            places = sorted((self._offset(peer), peer) for peer in self._peers)
            self._offsets = [offset for offset, _ in places]
            self._peers = [peer for _, peer in places]
            self._neighbors = self._wanted = self._keepers = self._bar = None
            self.calm = 0
        return past

    def around(self, peer: PeerId, count: int, rng: Random) -> list[RingMember]:
        """Whom to tell a peer of: the nearest on its two sides, and while the ring forms some at random."""
        peers, total = self._peers, len(self._peers)
        at = bisect_left(self._offsets, self._offset(peer))
        found: dict[PeerId, None] = {}
        for step, place in ((1, at), (-1, at - 1)):
            left = self._spares
            for distance in range(total):
                if not left:
                    break
                other = peers[(place + step * distance) % total]
                if other != peer:
                    found[other] = None
                    left -= 1
        free = count - len(found)
        if free > 0 and self.calm < _CALM and total > len(found):
            for other in rng.sample(peers, min(total, free)):
                if other != peer:
                    found[other] = None
        members = self._members
        return [members[other] for other in found][:count]

    def _offset(self, peer: PeerId) -> int:
        return (position(peer, self.keys, self.epoch, self._order) - self._origin) % _PLACES

    def _next(self, side: Iterable[PeerId], up: Container[PeerId]) -> PeerId | None:
        met, left = self._met, self._spares
        for peer in side:
            if peer in up:
                return peer
            if peer in met:
                left -= 1
                if not left:
                    return None
        return None

    def _nearest_met(self, side: Iterable[PeerId]) -> list[PeerId]:
        found: list[PeerId] = []
        for peer in side:
            if peer in self._met:
                found.append(peer)
                if len(found) == self._spares:
                    break
        return found

    def _meet(self, peer: PeerId) -> None:
        self._met[peer] = None
        self._neighbors = self._wanted = None

    def _insert(self, peer: PeerId, member: RingMember) -> None:
        offset = self._offset(peer)
        at = bisect_left(self._offsets, offset)
        self._offsets.insert(at, offset)
        self._peers.insert(at, peer)
        self._members[peer] = member
        self._neighbors = self._wanted = self._keepers = None

    def _trim(self) -> None:
        """Let those with the highest lots go: no neighbours, and of those who were met only the last."""
        near, met, rank = self.neighbors, self._met, self._rank
        far = [peer for peer in self._peers if peer not in near]
        excess = len(self._peers) - self._limit
        gone = nlargest(excess, [(peer not in met, rank(peer), peer) for peer in far])
        lots = [lot for is_stranger, lot, _ in gone if is_stranger]
        before = [] if self._bar is None else [self._bar]
        self._bar = min([*lots, *before]) if len(lots) == len(gone) else None
        for _, _, peer in gone:
            at = self._peers.index(peer)
            del self._peers[at], self._offsets[at], self._members[peer]
            met.pop(peer, None)
        self._keepers = None


def _newer(known: RingMember, told: RingMember) -> RingMember:
    """The newer descriptor of two words for one member, with the newer proof."""
    if told.node.version <= known.node.version and told.epoch <= known.epoch:
        return known
    node = told if told.node.version > known.node.version else known
    proof = told if told.epoch > known.epoch else known
    return RingMember(node.node, proof.epoch, proof.proof, node.keeps)
