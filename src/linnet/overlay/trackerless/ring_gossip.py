"""All rings of a node, and the gossip that mends them: who stands beside whom is told to the one it concerns.

In each round the one that was spoken with longest ago, over all rings, is told whom we know beside *its*
place on every ring that we share, and tells us the same (Voulgaris, van Steen 2007; Setty et al. 2012).
Members are believed on the word of any member, given as a proof under the ring's key. Who does not answer
leaves all rings, is not taken back on hearsay for a while, and is then tried again: it may have been the
network that was cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from random import Random

from msgspec import Struct

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.overlay.trackerless.acquaintances import Acquaintances
from linnet.overlay.trackerless.config import TrackerlessConfig
from linnet.overlay.trackerless.descriptor import DescriptorCheck, check_descriptor
from linnet.overlay.trackerless.messages import RINGS, Descriptor, RingAsk, RingMember, RingPart, RingTell
from linnet.overlay.trackerless.names import Names
from linnet.overlay.trackerless.ring import KNOWN, Ring
from linnet.overlay.trackerless.tags import TopicKeys, epoch_of, is_proof, proof
from linnet.trace.records import Kind, Record

_ASKS = 8
"""Questions of one peer that are answered in a round."""
_ABSENT = 512
"""Peers that did not answer and are remembered for it, at most."""
_ABSENCE = 30
"""Rounds for which whoever did not answer is not taken back on hearsay."""
_URGENT = 100
"""Rounds for which whoever never spoke with us seems not to have spoken."""
_SPOKE = 64
"""So many more peers than four times those that are wanted are remembered as spoken with."""
_RANKS = 4096


class RingNews(Struct, frozen=True, gc=False):
    """What a message about rings brought."""

    changed: list[TopicId]
    """Topics whose neighbours are others now."""
    records: list[Record]


class _Absent(Struct, gc=False):
    """Who does not answer, and the rings it was met on."""

    until: float
    members: dict[TopicId, RingMember]


class _Lots(dict[PeerId, int]):
    """The lots of peers: nobody else can tell them, and they are the same on all our rings."""

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
        acquaintances: Acquaintances,
        rng: Random,
        key: bytes,
        check: DescriptorCheck = check_descriptor,
        known: int = KNOWN,
        names: Names | None = None,
    ) -> None:
        self._ours = own.peer
        self._own = own
        self._config = config
        self._acquaintances = acquaintances
        self._rng = rng
        self._check = check
        self._known = known
        self._rings: dict[TopicId, Ring] = {}
        self._mine: dict[TopicId, RingMember] = {}
        self._keeps: dict[TopicId, bool] = {}
        self._names = Names(own.peer) if names is None else names
        self._lots = _Lots(key)
        self._spoke: dict[PeerId, int] = {}
        """The round in which each was last spoken with."""
        self._asked: dict[PeerId, int] = {}
        """The number of the question that each has yet to answer."""
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

    def open(self, keys: TopicKeys, now: float, keeps: bool = False) -> Ring:
        """Take part in a topic, or say otherwise whether it is kept."""
        topic = keys.topic
        self._keeps[topic] = keeps
        self._mine.pop(topic, None)
        ring = self._rings.get(topic)
        if ring is None:
            epoch = epoch_of(now, self._config.epoch_days)
            ring = Ring(self._ours, keys, self._config, epoch, self._lots.__getitem__, self._known)
            self._rings[topic] = ring
            self._names.open(keys)
        return ring

    def close(self, topic: TopicId) -> None:
        """Take part in a topic no more."""
        if self._rings.pop(topic, None) is None:
            return
        self._keeps.pop(topic, None)
        self._mine.pop(topic, None)
        self._names.close(topic)
        for absent in self._absent.values():
            absent.members.pop(topic, None)

    def introduce(self, own: Descriptor) -> None:
        """This is what we say of ourselves from now on."""
        if own is self._own:
            return
        self._own = own
        self._mine.clear()

    def shared(self, peer: PeerId) -> list[TopicId]:
        """The topics that a peer is known to be a member of."""
        return [topic for topic, ring in self._rings.items() if peer in ring]

    def met(self, topic: TopicId, node: Descriptor, given: bytes, epoch: int) -> bool:
        """A peer showed us itself that it is a member; its descriptor was checked.

        True if our neighbours changed.
        """
        ring = self._rings[topic]
        if abs(epoch - ring.epoch) > 1 or not is_proof(ring.keys, node.peer, epoch, given):
            raise RemoteError(Reason.NOT_IN_TOPIC, "the proof is of another topic, peer or epoch")
        self._absent.pop(node.peer, None)
        self._spoke.setdefault(node.peer, self._rounds)
        return ring.merge((RingMember(node, epoch, given),), met=node.peer)

    def round(self, now: float, asks: bool = True) -> tuple[PeerId, RingAsk] | None:
        """A round: whom to ask what. None if nobody is to be asked, or no member of any topic is known."""
        self._rounds += 1
        self._inbound.clear()
        self._turn(now)
        self._revive(now)
        target = self._oldest() if asks else None
        return None if target is None else (target, self.ask(target, now))

    def ask(self, peer: PeerId, now: float) -> RingAsk:
        """What a peer is asked, in its turn or at once because of a gap."""
        self._number += 1
        self._asked[peer] = self._number
        self._spoke[peer] = self._rounds
        topics = self.shared(peer)
        if len(topics) > RINGS:
            # Rings that still change come first; the others take turns by lot.
            self._rng.shuffle(topics)
            topics.sort(key=lambda topic: self._rings[topic].calm)
        return RingAsk(self._number, self._parts(peer, topics[:RINGS], now))

    def asked(self, peer: PeerId, ask: RingAsk, now: float) -> tuple[RingTell, RingNews]:
        """A member tells us whom it knows beside us; answer it the same way."""
        count = self._inbound[peer] = self._inbound.get(peer, 0) + 1
        if count > _ASKS:
            raise RemoteError(Reason.TOO_MANY, "asks about rings more often than once a round")
        news, topics = self._take(peer, ask.rings, now)
        return RingTell(ask.number, self._parts(peer, topics, now)), news

    def told(self, peer: PeerId, tell: RingTell, now: float) -> RingNews:
        """A member answers."""
        if self._asked.get(peer) != tell.number:
            note = "an answer about rings to no question"
            return RingNews([], [Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note=note)])
        del self._asked[peer]
        return self._take(peer, tell.rings, now)[0]

    def lost(self, peer: PeerId, now: float) -> list[TopicId]:
        """A member does not answer: it leaves all rings. Returns the topics whose neighbours changed."""
        self._asked.pop(peer, None)
        self._spoke.pop(peer, None)
        changed: list[TopicId] = []
        met: dict[TopicId, RingMember] = {}
        for topic, ring in self._rings.items():
            if peer not in ring:
                continue
            if peer in ring.wanted:
                changed.append(topic)
            was_met, member = ring.is_met(peer), ring.drop(peer)
            if member is not None and was_met:
                met[topic] = member
        self._absent.pop(peer, None)
        if len(self._absent) >= _ABSENT:
            del self._absent[next(iter(self._absent))]
        self._absent[peer] = _Absent(now + _ABSENCE * self._config.period, met)
        return changed

    def _take(self, peer: PeerId, parts: tuple[RingPart, ...], now: float) -> tuple[RingNews, list[TopicId]]:
        """Believe what can be believed; returns the topics that were spoken of as well."""
        self._spoke[peer] = self._rounds
        news = RingNews([], [])
        topics: list[TopicId] = []
        for part in parts:
            topic = self._names.topic(peer, part.hint)
            if topic is None:
                news.records.append(_rejected(peer, Reason.NOT_JOINED))
                continue
            if len(part.members) > self._config.gossip + 1:
                raise RemoteError(Reason.TOO_MANY, f"{len(part.members)} members of one ring")
            ring = self._rings[topic]
            checked = self._checked(peer, ring, part.members, now, news.records)
            if ring.merge(checked, met=peer):
                news.changed.append(topic)
            topics.append(topic)
        self._absent.pop(peer, None)
        return news, topics

    def _checked(
        self, teller: PeerId, ring: Ring, members: Iterable[RingMember], now: float, records: list[Record]
    ) -> list[RingMember]:
        """The members that are new to a ring and are what they are said to be."""
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
            if peer == self._ours or (peer != teller and peer in self._absent):
                continue
            if known is None and peer != teller and not ring.has_room_for(peer):
                continue
            if abs(member.epoch - ring.epoch) > 1:
                records.append(_rejected(teller, Reason.STALE, ring.keys.topic))
                continue
            if not is_proof(ring.keys, peer, member.epoch, member.proof):
                raise RemoteError(Reason.NOT_IN_TOPIC, "a member without a proof")
            try:
                checked.append(self._with_descriptor(member, now))
            except RemoteError as error:
                if error.reason is not Reason.STALE:
                    raise
                records.append(_rejected(teller, error.reason, ring.keys.topic))
        return checked

    def _with_descriptor(self, member: RingMember, now: float) -> RingMember:
        """The member with a descriptor that was checked, now or before."""
        node = member.node
        known = self._acquaintances.descriptor(node.peer)
        if known is None or known.version < node.version:
            self._check(node, now)
            self._acquaintances.learn(node, now)
            return member
        if known is node or known == node:
            return member
        return RingMember(known, member.epoch, member.proof, member.keeps)

    def _parts(self, peer: PeerId, topics: Iterable[TopicId], now: float) -> tuple[RingPart, ...]:
        parts = []
        for topic in topics:
            members = self._rings[topic].around(peer, self._config.gossip, self._rng)
            members.append(self._member(topic, now))
            parts.append(RingPart(self._names.of(topic, peer), tuple(members)))
        return tuple(parts)

    def _member(self, topic: TopicId, now: float) -> RingMember:
        """Ourselves as a member, with our own word for it."""
        mine = self._mine.get(topic)
        ring = self._rings[topic]
        if mine is None or mine.epoch != ring.epoch:
            given = proof(ring.keys, self._ours, ring.epoch)
            mine = self._mine[topic] = RingMember(self._own, ring.epoch, given, self._keeps[topic])
        return mine

    def _oldest(self) -> PeerId | None:
        """Of all whom some ring wants, the one that was spoken with longest ago, and for most rings.

        Those who never spoke with us come first, so that a newcomer is tried soon. But every third turn
        is of the one that was spoken with longest ago whatever the rings: so someone who invents members
        cannot keep us from speaking with those that there are, and no ring is left out.
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

    def _turn(self, now: float) -> None:
        epoch = epoch_of(now, self._config.epoch_days)
        for ring in self._rings.values():
            if ring.epoch != epoch:
                ring.turn(epoch)

    def _revive(self, now: float) -> None:
        """Try those again that were met once and did not answer for a while."""
        for peer in [peer for peer, absent in self._absent.items() if absent.until <= now]:
            for topic, member in self._absent.pop(peer).members.items():
                ring = self._rings.get(topic)
                if ring is not None and member.node.expires > now and abs(member.epoch - ring.epoch) <= 1:
                    ring.merge((member,))


def _rejected(peer: PeerId, reason: Reason, topic: TopicId | None = None) -> Record:
    return Record(Kind.REJECTED, topic, peer=peer, reason=reason, note="ring")
