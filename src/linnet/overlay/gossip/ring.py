"""One topic's ring at one node: the known members in order, and the next one on each side.

All members of a topic stand on a circle of 2^256 places (Voulgaris, van Steen 2007; Setty et al. 2012). The
known ones are kept in the order in which they follow us clockwise, so the first are our successors and the
last our predecessors, and the wrap needs no case of its own. Beside the nearest, some random members are
kept: they are the shortcuts.

A member known only by hearsay may be invented. It is tried, but it displaces no member that spoke with us:
the next on a side is the nearest that was met, and the nearest met members stay known even if others are said
to stand between.
"""

from __future__ import annotations

import hmac
from bisect import bisect_left
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from heapq import nlargest
from random import Random

import msgspec

from linnet.core.errors import RemoteError, StoreError
from linnet.core.ids import PeerId, TopicId
from linnet.core.stores import Cells
from linnet.overlay.gossip.config import RingOrder, TrackerlessConfig
from linnet.overlay.gossip.descriptor import DescriptorCheck
from linnet.overlay.gossip.messages import RingMember
from linnet.overlay.gossip.topic_tags import TopicKeys, is_proof

KNOWN = 64
"""Members of one ring that are known at once."""

QUIET = 64
"""Events in a row that a neighbour has not brought first, from which on the member behind it gets them as
well."""

_CALM = 8
"""Exchanges without a change after which a ring counts as formed, and less is told."""

_PLACES = 1 << 256
_POSITION = b"linnet/overlay/position/1"

Rank = Callable[[PeerId], int]
"""Random ranks that a node gives to others, the same in all its rings: the lowest are its shortcuts."""


def position(peer: PeerId, keys: TopicKeys, epoch: int, order: RingOrder) -> int:
    """Return the position of a peer on the ring of a topic."""
    if order is RingOrder.ID:
        return int.from_bytes(peer, "big")
    hashed = hmac.digest(keys.ring, _POSITION + epoch.to_bytes(8, "big") + peer, "sha256")
    return int.from_bytes(hashed, "big")


class Ring:
    """The members of one topic that a node knows. Callers check members before they merge them."""

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
        """The clockwise distance of each known member from us, rising; `_peers` has the same order."""
        self._peers: list[PeerId] = []
        self._members: dict[PeerId, RingMember] = {}
        self._met: dict[PeerId, None] = {}
        self._quiet: dict[PeerId, int] = {}
        """For each of our two next members, how many events in a row came first from another peer."""
        self._neighbors: tuple[PeerId, ...] | None = ()
        self._wanted: tuple[PeerId, ...] | None = ()
        self._keepers: tuple[PeerId, ...] | None = ()
        self._bar: int | None = None
        """The lowest rank of the members that were dropped for want of room, while there is none."""
        self.calm = 0
        """Exchanges about this ring in a row that changed none of our neighbours."""

    def __len__(self) -> int:
        return len(self._peers)

    def __contains__(self, peer: PeerId) -> bool:
        return peer in self._members

    def __iter__(self) -> Iterator[PeerId]:
        return iter(self._peers)

    def get(self, peer: PeerId) -> RingMember | None:
        """Return the entry of a member."""
        return self._members.get(peer)

    def is_met(self, peer: PeerId) -> bool:
        """Return whether a member spoke with us itself."""
        return peer in self._met

    def has_room_for(self, peer: PeerId) -> bool:
        """Return whether an unknown member would stay known: on a full ring one nearby, or of a low rank."""
        if self._bar is None or self._rank(peer) < self._bar:
            return True
        at = bisect_left(self._offsets, self._offset(peer))
        return at < self._spares or len(self._offsets) - at < self._spares

    @property
    def keepers(self) -> tuple[PeerId, ...]:
        """The members that keep the topic, in ring order."""
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
        """Whether the ring has formed, as far as can be told: exchanges change nothing any more."""
        return self.calm >= _CALM

    @property
    def missing(self) -> int:
        """The number of neighbours by which a node on a ring of many members would have more than are
        known."""
        return max(0, 2 * self._spares - len(self._peers))

    @property
    def neighbors(self) -> tuple[PeerId, ...]:
        """The nearest on both sides, and the nearest that were met, each once."""
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
        """The members to which the topic wants links: the neighbours, then the shortcuts."""
        if self._wanted is None:
            near = self.neighbors
            far = [peer for peer in self._peers if peer not in near]
            far.sort(key=self._rank)
            self._wanted = (*near, *far[: self._shortcuts])
        return self._wanted

    @property
    def shortcuts(self) -> tuple[PeerId, ...]:
        """Random members far off, drawn once: they change only when a lower rank turns up, or one is gone."""
        return self.wanted[len(self.neighbors) :]

    def find_successor(self, up: Container[PeerId]) -> PeerId | None:
        """Return the next member clockwise that is up: the nearest that was met, or a spare; None: a gap."""
        return self._find_next(self._peers, up)

    def find_predecessor(self, up: Container[PeerId]) -> PeerId | None:
        """Return the next member counter-clockwise that is up; None: a gap."""
        return self._find_next(reversed(self._peers), up)

    def find_beyond(self, up: Container[PeerId], ahead: bool) -> PeerId | None:
        """Return the member to ask about a gap on a side: the first one there that is up, however far off."""
        side: Iterable[PeerId] = self._peers if ahead else reversed(self._peers)
        return next((peer for peer in side if peer in up), None)

    def note_sources(self, sources: Container[PeerId], beside: Iterable[PeerId | None]) -> None:
        """Note the peers that brought an event; count it as missed for those of the two next to us that did
        not."""
        quiet = self._quiet
        self._quiet = {
            peer: 0 if peer in sources else quiet.get(peer, 0) + 1 for peer in beside if peer is not None
        }

    def is_quiet(self, peer: PeerId) -> bool:
        """Return whether a neighbour has brought no event for long: it may pass nothing on."""
        return self._quiet.get(peer, 0) >= QUIET

    def merge_members(self, members: Collection[RingMember], met: PeerId | None = None) -> bool:
        """Take in checked members; `met` is the one that spoke. Return whether our neighbours changed."""
        if not members and (met is None or met in self._met):
            self.calm += 1
            return False
        before = self.neighbors
        if met is not None and met in self._members and met not in self._met:
            self._note_met(met)
        for member in members:
            peer = member.node.peer
            known = self._members.get(peer)
            if known is not None:
                newer = self._members[peer] = _newer(known, member)
                if newer.keeps != known.keeps:
                    self._keepers = None
            elif peer != self._ours:
                self._insert_member(peer, member)
            if peer == met and peer in self._members and peer not in self._met:
                self._note_met(peer)
        if len(self._peers) > self._limit:
            self._drop_excess()
        changed = self.neighbors != before
        self.calm = 0 if changed else self.calm + 1
        return changed

    def drop_member(self, peer: PeerId) -> RingMember | None:
        """Drop a member that is gone, or does not answer; return its entry."""
        member = self._members.pop(peer, None)
        if member is None:
            return None
        at = self._peers.index(peer)
        del self._peers[at], self._offsets[at]
        self._met.pop(peer, None)
        self._neighbors = self._wanted = self._keepers = self._bar = None
        self.calm = 0
        return member

    def begin_epoch(self, epoch: int) -> list[PeerId]:
        """Begin an epoch: positions change if they are hashes; members with too old a proof are dropped and
        returned."""
        if epoch == self.epoch:
            return []
        self.epoch = epoch
        past = [peer for peer, member in self._members.items() if abs(member.epoch - epoch) > 1]
        for peer in past:
            self.drop_member(peer)
        if self._order is RingOrder.HASH:
            self._origin = position(self._ours, self.keys, epoch, self._order)
            places = sorted((self._offset(peer), peer) for peer in self._peers)
            self._offsets = [offset for offset, _ in places]
            self._peers = [peer for _, peer in places]
            self._neighbors = self._wanted = self._keepers = self._bar = None
            self.calm = 0
        return past

    def members_around(self, peer: PeerId, count: int, rng: Random) -> list[RingMember]:
        """Return members to name to a peer: the nearest on its two sides, and random ones while the ring
        forms."""
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

    def _find_next(self, side: Iterable[PeerId], up: Container[PeerId]) -> PeerId | None:
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

    def _note_met(self, peer: PeerId) -> None:
        self._met[peer] = None
        self._neighbors = self._wanted = None

    def _insert_member(self, peer: PeerId, member: RingMember) -> None:
        offset = self._offset(peer)
        at = bisect_left(self._offsets, offset)
        self._offsets.insert(at, offset)
        self._peers.insert(at, peer)
        self._members[peer] = member
        self._neighbors = self._wanted = self._keepers = None

    def _drop_excess(self) -> None:
        """Drop the members with the highest ranks: no neighbours, and members that were met only last."""
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
    """Return the newer descriptor of two entries for one member, with the newer proof."""
    if told.node.version <= known.node.version and told.epoch <= known.epoch:
        return known
    node = told if told.node.version > known.node.version else known
    proof = told if told.epoch > known.epoch else known
    return RingMember(node.node, proof.epoch, proof.proof, node.keeps)


SPACE = "trackerless rings"
MEMBERS = 8
"""Members of one ring that are saved."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[RingMember, ...]).decode


class SavedRings:
    """The saved members of the rings of a node. They are as secret as the list of its topics."""

    def __init__(self, cells: Cells, check: DescriptorCheck) -> None:
        self._cells = cells
        self._check = check
        self._written: dict[TopicId, tuple[RingMember, ...]] = {}
        """What was written since the start, so that it is not written again."""

    def save_members(self, topic: TopicId, members: Iterable[RingMember]) -> None:
        """Save members, the nearest first. If there are none the old ones stay: the network may be down."""
        kept = tuple(members)[:MEMBERS]
        if kept and self._written.get(topic) != kept:
            self._written[topic] = kept
            self._cells.put(SPACE, topic, _encode(kept))

    def forget_topic(self, topic: TopicId) -> None:
        """Forget a topic that we left."""
        self._written.pop(topic, None)
        self._cells.delete(SPACE, topic)

    def load_members(self, keys: TopicKeys, epoch: int, now: float) -> list[RingMember]:
        """Return the saved members whose descriptors have not expired."""
        raw = self._cells.get(SPACE, keys.topic)
        if raw is None:
            return []
        try:
            kept = _decode(raw)
        except msgspec.MsgspecError as error:
            raise StoreError("the stored members of a ring are damaged") from error
        return [member for member in kept if self._is_good(keys, member, epoch, now)]

    def _is_good(self, keys: TopicKeys, member: RingMember, epoch: int, now: float) -> bool:
        if abs(member.epoch - epoch) > 1 or not is_proof(keys, member.node.peer, member.epoch, member.proof):
            return False
        try:
            self._check(member.node, now)
        except RemoteError:
            # It was good when it was saved, and has expired since.
            return False
        return True
