"""All rings of a node, and the gossip that repairs them: members tell each other who stands beside them.

In each round the member that was spoken with longest ago, over all rings, is told which members we know
beside *its* place on every ring that we share, and tells us the same (Voulgaris, van Steen 2007; Setty et al.
2012). Members are believed on the word of any member, given as a proof under the ring's key. A peer that does
not answer leaves all rings, is not taken back on hearsay for a while, and is then tried again: there may have
been a network partition.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from hashlib import blake2b
from random import Random

from msgspec import Struct

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.descriptor import DescriptorCheck, check_descriptor
from linnet.overlay.gossip.known_peers import KnownPeers
from linnet.overlay.gossip.messages import RINGS, Descriptor, RingAsk, RingMember, RingPart, RingTell
from linnet.overlay.gossip.ring import Ring
from linnet.overlay.gossip.topic_tags import PairNames, TopicKeys, epoch_of, is_proof, proof
from linnet.trace.records import Kind, Record

_ASKS = 8
"""Questions of one peer that are answered in a round."""
_ABSENT = 512
"""The most peers that are remembered for not answering."""
_ABSENCE = 30
"""Rounds for which a peer that did not answer is not taken back on hearsay."""
_URGENT = 100
"""Rounds of silence that a peer which never spoke with us is credited with."""
_SPOKE = 64
"""How many more peers than four times the wanted ones are remembered as spoken with."""
_RANKS = 4096


class RingNews(Struct, frozen=True, gc=False):
    """The outcome of a message about rings."""

    changed: list[TopicId]
    """Topics whose neighbours changed."""
    records: list[Record]


class _Absent(Struct, gc=False):
    """A peer that does not answer, and the rings on which it was met."""

    until: float
    members: dict[TopicId, RingMember]
    unmet: dict[TopicId, RingMember]
    """The rings on which it stood by the word of others, or by saved entries."""


class _Lots(dict[PeerId, int]):
    """The random ranks of peers: no other node can compute them, and they are the same on all our rings."""

    def __init__(self, key: bytes) -> None:
        super().__init__()
        self._key = key

    def __missing__(self, peer: PeerId) -> int:
        if len(self) >= _RANKS:
            self.clear()
        digest = blake2b(peer, digest_size=8, key=self._key).digest()
        rank = self[peer] = int.from_bytes(digest, "big")
        return rank


class Rings:
    """The rings of all topics of a node."""

    def __init__(
        self,
        own: Descriptor,
        config: TrackerlessConfig,
        acquaintances: KnownPeers,
        rng: Random,
        key: bytes,
        check: DescriptorCheck = check_descriptor,
        names: PairNames | None = None,
        local: Container[PeerId] = (),
        is_kept_from: Callable[[PeerId, TopicId], bool] = lambda peer, topic: False,
    ) -> None:
        """`local` are the devices on local networks: to them no filter is shown, and of a topic that
        `is_kept_from` them nothing is said.
        """
        self._own = own
        self._plain = own
        self._local = local
        self._is_kept_from = is_kept_from
        self._config = config
        self._acquaintances = acquaintances
        self._rng = rng
        self._check = check
        self._rings: dict[TopicId, Ring] = {}
        self._mine: dict[tuple[TopicId, bool], RingMember] = {}
        """Our own word for ourselves: as it is said to those on a local network, and to others."""
        self._keeps: dict[TopicId, bool] = {}
        self._names = PairNames(own.peer) if names is None else names
        self._lots = _Lots(key)
        self._spoke: dict[PeerId, int] = {}
        """The round in which each peer was last spoken with."""
        self._asked: dict[PeerId, int] = {}
        """The number of the question that each peer has yet to answer."""
        self._inbound: dict[PeerId, int] = {}
        self._absent: dict[PeerId, _Absent] = {}
        self._rounds = 0
        self._number = 0

    def __contains__(self, topic: TopicId) -> bool:
        return topic in self._rings

    def __getitem__(self, topic: TopicId) -> Ring:
        return self._rings[topic]

    def __iter__(self) -> Iterator[TopicId]:
        return iter(self._rings)

    def __len__(self) -> int:
        return len(self._rings)

    def open_ring(self, keys: TopicKeys, now: float, keeps: bool = False) -> Ring:
        """Take part in a topic, or change whether it is kept."""
        topic = keys.topic
        self._keeps[topic] = keeps
        self._forget_word(topic)
        ring = self._rings.get(topic)
        if ring is None:
            epoch = epoch_of(now, self._config.epoch_days)
            ring = Ring(self._own.peer, keys, self._config, epoch, self._lots.__getitem__)
            self._rings[topic] = ring
            self._names.add_topic(keys)
        return ring

    def close_ring(self, topic: TopicId) -> None:
        """Take part in a topic no longer."""
        if self._rings.pop(topic, None) is None:
            return
        self._keeps.pop(topic, None)
        self._forget_word(topic)
        self._names.remove_topic(topic)
        for absent in self._absent.values():
            absent.members.pop(topic, None)
            absent.unmet.pop(topic, None)

    def set_descriptor(self, own: Descriptor, plain: Descriptor | None = None) -> None:
        """Replace our own descriptor, and the plain one that is shown on local networks."""
        if own is self._own and plain in (None, self._plain):
            return
        self._own = own
        self._plain = own if plain is None else plain
        self._mine.clear()

    def shared_topics(self, peer: PeerId) -> list[TopicId]:
        """Return the topics of which a peer is a known member."""
        return [topic for topic, ring in self._rings.items() if peer in ring]

    def add_member(self, topic: TopicId, node: Descriptor, given: bytes, epoch: int) -> bool:
        """Add a peer that showed us itself that it is a member; its descriptor was checked.

        Return whether our neighbours changed.
        """
        ring = self._rings[topic]
        if abs(epoch - ring.epoch) > 1 or not is_proof(ring.keys, node.peer, epoch, given):
            raise RemoteError(Reason.NOT_IN_TOPIC, "the proof is of another topic, peer or epoch")
        self._absent.pop(node.peer, None)
        self._spoke.setdefault(node.peer, self._rounds)
        return ring.merge_members((RingMember(node, epoch, given),), met=node.peer)

    def begin_round(self, now: float, asks: bool = True) -> tuple[PeerId, RingAsk] | None:
        """Begin a round; return a peer and the question for it. None if no peer is to be asked, or none is
        known."""
        self._rounds += 1
        self._inbound.clear()
        self._begin_epoch(now)
        self._revive_absent(now)
        target = self._choose_target() if asks else None
        return None if target is None else (target, self.make_ask(target, now))

    def make_ask(self, peer: PeerId, now: float) -> RingAsk:
        """Make the question to a peer, in its turn or at once because of a gap."""
        self._number += 1
        self._asked[peer] = self._number
        self._spoke[peer] = self._rounds
        topics = self.shared_topics(peer)
        if len(topics) > RINGS:
            # Rings that still change come first; the others take turns by lot.
            self._rng.shuffle(topics)
            topics.sort(key=lambda topic: self._rings[topic].calm)
        return RingAsk(self._number, self._make_parts(peer, topics[:RINGS], now))

    def handle_ask(self, peer: PeerId, ask: RingAsk, now: float) -> tuple[RingTell, RingNews]:
        """Take in the members that a member knows beside us; answer it the same way."""
        count = self._inbound[peer] = self._inbound.get(peer, 0) + 1
        if count > _ASKS:
            raise RemoteError(Reason.TOO_MANY, "asks about rings more often than once a round")
        news, topics = self._take_parts(peer, ask.rings, now)
        return RingTell(ask.number, self._make_parts(peer, topics, now)), news

    def handle_tell(self, peer: PeerId, tell: RingTell, now: float) -> RingNews:
        """Take in a member's answer."""
        if self._asked.get(peer) != tell.number:
            note = "an answer about rings to no question"
            return RingNews([], [Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note=note)])
        del self._asked[peer]
        return self._take_parts(peer, tell.rings, now)[0]

    def drop_member(self, peer: PeerId, now: float) -> list[TopicId]:
        """Drop a member that does not answer from all rings. Return the topics whose neighbours changed."""
        self._asked.pop(peer, None)
        self._spoke.pop(peer, None)
        changed: list[TopicId] = []
        before = self._absent.pop(peer, None)
        met = {} if before is None else before.members
        unmet = {} if before is None else before.unmet
        for topic, ring in self._rings.items():
            if peer not in ring:
                continue
            if peer in ring.wanted:
                changed.append(topic)
            was_met, member = ring.is_met(peer), ring.drop_member(peer)
            if member is not None:
                (met if was_met else unmet)[topic] = member
        if len(self._absent) >= _ABSENT:
            del self._absent[next(iter(self._absent))]
        self._absent[peer] = _Absent(now + _ABSENCE * self._config.period, met, unmet)
        return changed

    def keep_from(self, peer: PeerId, topic: TopicId) -> bool:
        """A topic is not spoken of with a member any more. Returns whether its neighbours changed."""
        absent = self._absent.get(peer)
        for members in () if absent is None else (absent.members, absent.unmet):
            members.pop(topic, None)
        is_wanted = peer in self._rings[topic].wanted
        self._rings[topic].drop_member(peer)
        return is_wanted

    def forget_member(self, peer: PeerId) -> list[TopicId]:
        """Keep nothing of a member: it leaves all rings. Returns the topics whose neighbours changed."""
        changed = self.drop_member(peer, 0.0)
        del self._absent[peer]
        self._inbound.pop(peer, None)
        return changed

    def _take_parts(
        self, peer: PeerId, parts: tuple[RingPart, ...], now: float
    ) -> tuple[RingNews, list[TopicId]]:
        """Take in what passes the checks; return also the topics that were mentioned."""
        self._spoke[peer] = self._rounds
        news = RingNews([], [])
        topics: list[TopicId] = []
        for part in parts:
            topic = self._names.find_topic(peer, part.hint)
            if topic is None or self._is_kept_from(peer, topic):
                news.records.append(_rejected(peer, Reason.NOT_JOINED))
                continue
            if len(part.members) > self._config.gossip + 1:
                raise RemoteError(Reason.TOO_MANY, f"{len(part.members)} members of one ring")
            ring = self._rings[topic]
            checked = self._check_members(peer, ring, part.members, now, news.records)
            if ring.merge_members(checked, met=peer):
                news.changed.append(topic)
            topics.append(topic)
        self._absent.pop(peer, None)
        return news, topics

    def _check_members(
        self, teller: PeerId, ring: Ring, members: Iterable[RingMember], now: float, records: list[Record]
    ) -> list[RingMember]:
        """Return the members that are new to a ring and pass the checks."""
        checked: list[RingMember] = []
        get = ring.get
        for member in members:
            node = member.node
            peer = node.peer
            known = get(peer)
            if known is not None and (
                member is known or (member.epoch <= known.epoch and node.version <= known.node.version)
            ):
                continue  # By far the most.
            if peer == self._own.peer or (peer != teller and peer in self._absent):
                continue
            if self._is_kept_from(peer, ring.keys.topic):
                continue
            if known is None and peer != teller and not ring.has_room_for(peer):
                continue
            if abs(member.epoch - ring.epoch) > 1:
                records.append(_rejected(teller, Reason.STALE, ring.keys.topic))
                continue
            if not is_proof(ring.keys, peer, member.epoch, member.proof):
                raise RemoteError(Reason.NOT_IN_TOPIC, "a member without a proof")
            try:
                found = self._with_descriptor(member, teller, now)
                if not self._acquaintances.is_parted(peer):
                    checked.append(found)
            except RemoteError as error:
                if error.reason is not Reason.STALE:
                    raise
                records.append(_rejected(teller, error.reason, ring.keys.topic))
        return checked

    def _with_descriptor(self, member: RingMember, teller: PeerId, now: float) -> RingMember:
        """Return the member with a descriptor that was checked, now or before."""
        node = member.node
        known = self._acquaintances.descriptor_of(node.peer)
        if known is None or known.version < node.version:
            self._check(node, now)
            self._acquaintances.note_word(node, teller)
            self._acquaintances.learn_descriptor(node, now)
            return member
        if known is node or known == node:
            return member
        return RingMember(known, member.epoch, member.proof, member.keeps)

    def _make_parts(self, peer: PeerId, topics: Iterable[TopicId], now: float) -> tuple[RingPart, ...]:
        parts = []
        for topic in topics:
            members = self._rings[topic].members_around(peer, self._config.gossip, self._rng)
            members.append(self._own_member(topic, peer in self._local))
            parts.append(RingPart(self._names.name_of(topic, peer), tuple(members)))
        return tuple(parts)

    def _own_member(self, topic: TopicId, is_local: bool) -> RingMember:
        """Return ourselves as a member, with our own proof."""
        mine = self._mine.get((topic, is_local))
        ring = self._rings[topic]
        if mine is None or mine.epoch != ring.epoch:
            given = proof(ring.keys, self._own.peer, ring.epoch)
            own = self._plain if is_local else self._own
            mine = RingMember(own, ring.epoch, given, self._keeps[topic])
            self._mine[topic, is_local] = mine
        return mine

    def _forget_word(self, topic: TopicId) -> None:
        for is_local in (False, True):
            self._mine.pop((topic, is_local), None)

    def _choose_target(self) -> PeerId | None:
        """Choose the wanted member that was spoken with longest ago, weighted by its number of rings.

        Members that never spoke with us come first, so that a newcomer is tried soon. But in every third turn
        the rings do not count, only the time: so a peer that invents members cannot keep us from speaking
        with real ones, and no ring is left out.
        """
        spoke = self._spoke
        wanted: dict[PeerId, int] = {}
        for ring in self._rings.values():
            for peer in ring.wanted:
                wanted[peer] = wanted.get(peer, 0) + 1
        if len(spoke) > 4 * len(wanted) + _SPOKE:
            self._spoke = spoke = {peer: last for peer, last in spoke.items() if peer in wanted}
        friends = [peer for peer in wanted if peer in spoke] if self._rounds % 3 == 0 else None
        if friends:
            return min(friends, key=spoke.__getitem__)
        urgent = {peer: (self._rounds - spoke.get(peer, -_URGENT)) * rings for peer, rings in wanted.items()}
        most = max(urgent.values(), default=0)
        first = [peer for peer, urgency in urgent.items() if urgency == most]
        return self._rng.choice(first) if first else None

    def _begin_epoch(self, now: float) -> None:
        epoch = epoch_of(now, self._config.epoch_days)
        for ring in self._rings.values():
            if ring.epoch != epoch:
                ring.begin_epoch(epoch)

    def _revive_absent(self, now: float) -> None:
        """Put back members that were met once, and have not answered for a while."""
        for peer in [peer for peer, absent in self._absent.items() if absent.until <= now]:
            self._merge_back(self._absent.pop(peer).members, now)

    def revive_member(self, peer: PeerId, now: float) -> list[TopicId]:
        """Put a peer that did not answer back on its rings, since its link is open. Return changed rings."""
        absent = self._absent.pop(peer, None)
        return [] if absent is None else self._merge_back({**absent.unmet, **absent.members}, now)

    def _merge_back(self, members: dict[TopicId, RingMember], now: float) -> list[TopicId]:
        changed = []
        for topic, member in members.items():
            ring = self._rings.get(topic)
            if ring is None or member.node.expires <= now or abs(member.epoch - ring.epoch) > 1:
                continue
            if ring.merge_members((member,)):
                changed.append(topic)
        return changed


def _rejected(peer: PeerId, reason: Reason, topic: TopicId | None = None) -> Record:
    return Record(Kind.REJECTED, topic, peer=peer, reason=reason, note="ring")
