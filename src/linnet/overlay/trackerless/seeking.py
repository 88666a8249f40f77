"""Searches for members of a topic, by walkers that do not say which: from peer to peer that seems closest.

A walker carries the bits that the topic's tag sets in a filter, mixed with as many others as make three
quarters decoys. Each node passes it on to whichever of its acquaintances seems likeliest to show those bits,
never twice to the same, and back where there is no way on (after UPSYCLE 2020). Answers go the way that the
walker came.

Two things would tell more than intended, and do not:

- Decoys are the same in all searches for a topic in an epoch: otherwise whoever saw two would know what
  they have in common.
- Whether a node answers is as noisy as its filter. If it always answered when it is a member, and only
  then, asking for all bits would undo the noise of the filter that it shows. So it answers where that
  filter has the bits, truly if it is a member and with an answer that says nothing if not; and of topics
  that the filter does not show, with noise of its own, drawn once for the epoch. That is one more release
  with the same epsilon: asking again tells nothing new.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Sequence
from random import Random

from msgspec import MsgspecError, Struct, msgpack, structs

from linnet.core.errors import MalformedMessage, Refused
from linnet.core.ids import PeerId, TopicId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.overlay.trackerless.config import TrackerlessConfig
from linnet.overlay.trackerless.estimates import flip_probability
from linnet.overlay.trackerless.filter import positions
from linnet.overlay.trackerless.likeliest import Score, ranked
from linnet.overlay.trackerless.messages import Descriptor, RingMember, Seek, Sought
from linnet.overlay.trackerless.sealing import KEY_BYTES, ReplyKey, open_answer, reply_key, seal_answer
from linnet.overlay.trackerless.tags import TopicKeys, is_proof, proof, tag_in
from linnet.trace.records import Kind, Record

WALK = 60.0
"""Seconds for which a node remembers a walker, and with it the way back."""

_DECOYS = 3
"""Decoys for each bit that is meant."""
_WALKERS = 2048
"""Walkers that are remembered at once."""
_OF_ONE = 256
"""Of these, walkers that one peer sent."""
_ANSWERS = 64
"""Answers that are passed back for one walker."""
_HIDDEN_START = 4
"""A walker begins with up to so many hops less than all: whoever gets it first cannot tell that it is."""
_DECOY = b"linnet/overlay/decoy/1"
_NOISE = b"linnet/overlay/answers/1"

_encoder = msgpack.Encoder()
_decoder = msgpack.Decoder(RingMember)


class Walk:
    """What a node remembers of one walker."""

    __slots__ = ("answers", "bits", "key", "origin", "topic", "tried", "until")

    def __init__(self, origin: PeerId | None, bits: Sequence[int], until: float) -> None:
        self.origin = origin
        """Where it came from; None: it is our own."""
        self.bits = bits
        """What is looked for in neighbours."""
        self.until = until
        self.tried: tuple[PeerId, ...] = ()
        self.answers = 0
        self.key: ReplyKey | None = None
        self.topic: TopicKeys | None = None
        """If it is our own: what it looks for."""


class Found(Struct, frozen=True, gc=False):
    """A search found a member, by the word of someone who holds the ring's key."""

    topic: TopicId
    member: RingMember


class Hop(Struct, frozen=True, gc=False):
    """What comes of a walker or an answer: messages, a member found, and what there is to record."""

    sends: list[tuple[PeerId, Seek | Sought]]
    records: list[Record]
    found: Found | None = None


class Seeking:
    """The searches of a node, and those of others that come by."""

    def __init__(self, config: TrackerlessConfig, rng: Random, entropy: Entropy, key: bytes) -> None:
        self._config = config
        self._rng = rng
        self._entropy = entropy
        self._key = key
        self._topics: dict[TopicId, TopicKeys] = {}
        self._walks: dict[bytes, Walk] = {}
        self._of: dict[PeerId, int] = {}
        """How many of the walkers that are remembered came from each peer."""
        self._bits: dict[tuple[TopicId, int], tuple[int, ...]] = {}
        self._noise = (-1, 0, 0)
        """Of an epoch: bits whose noise was drawn, and those of them that it turns around."""
        self._hidden: tuple[int, bytes, dict[int, None]] = (-1, b"", {})
        """Of an epoch and a filter: the bits of our topics that it does not show."""

    def __len__(self) -> int:
        return len(self._walks)

    def open(self, keys: TopicKeys) -> None:
        """We are a member of this topic, and may be found."""
        self._topics[keys.topic] = keys
        self._hidden = (-1, b"", {})

    def close(self, topic: TopicId) -> None:
        """We are a member no more."""
        self._topics.pop(topic, None)
        self._hidden = (-1, b"", {})
        self._bits = {at: bits for at, bits in self._bits.items() if at[0] != topic}
        for request in [r for r, walk in self._walks.items() if walk.topic and walk.topic.topic == topic]:
            self._forget(request)

    def begin(
        self,
        keys: TopicKeys,
        epoch: int,
        neighbors: Sequence[PeerId],
        score: Score,
        now: float,
        alike: Collection[PeerId] = (),
        hops: int | None = None,
    ) -> Hop:
        """Send out walkers, each to another of the likeliest neighbours. Only here the true bits count.

        `alike` are those of the neighbours that were chosen for being like us, `hops` how far they go at
        most.
        """
        hop = Hop([], self._make_room(now))
        meant = self._meant(keys, epoch)
        shown = self._disguised(keys, epoch)
        likeliest = ranked(neighbors, score, meant, alike, self._rng)
        for peer in likeliest[: self._config.seek_walkers]:
            walk = Walk(None, meant, now + WALK)
            walk.key, walk.topic = reply_key(self._entropy), keys
            walk.tried = (peer,)
            request = self._entropy(16)
            self._walks[request] = walk
            left = max(1, (hops or self._config.seek_hops) - self._rng.randrange(_HIDDEN_START))
            hop.sends.append((peer, Seek(request, shown, epoch, walk.key.public, left, False)))
        return hop

    def step(
        self,
        peer: PeerId,
        seek: Seek,
        own: Descriptor,
        neighbors: Sequence[PeerId],
        score: Score,
        now: float,
        alike: Collection[PeerId] = (),
    ) -> Hop:
        """A walker comes by, or comes back: answer it, pass it on, or send it back."""
        self._check(seek)
        walk = self._walks.get(seek.request)
        if seek.back:
            if walk is None or peer not in walk.tried:
                return Hop([], [_rejected(peer, Reason.STALE, "a walker came back that was not sent")])
            return self._onward(walk, seek, neighbors, score, alike)
        if walk is not None:
            return self._back(peer, seek)
        if self._of.get(peer, 0) >= _OF_ONE:
            self.expire(now)
            if self._of.get(peer, 0) >= _OF_ONE:
                # No offence: it may only pass on what many others look for.
                busy = Record(Kind.DROPPED, peer=peer, reason=Reason.TOO_MANY, note="a search was sent back")
                return Hop(self._back(peer, seek).sends, [busy])
        records = self._make_room(now)
        answered = self._answered(seek, own)
        # What we answer for ourselves is no reason to go on to our like: a decoy would keep it here.
        bits = tuple([bit for bit in seek.positions if bit not in answered])
        walk = self._walks[seek.request] = Walk(peer, bits, now + WALK)
        self._of[peer] = self._of.get(peer, 0) + 1
        try:
            answers = self._answer(peer, seek, own, answered)
        except MalformedMessage as error:
            # Whoever passed it on need not have seen it.
            return Hop([], [*records, _rejected(peer, error.reason, error.detail)])
        onward = self._onward(walk, seek, neighbors, score, alike)
        return Hop([*answers.sends, *onward.sends], [*records, *answers.records, *onward.records])

    def failed(
        self,
        peer: PeerId,
        seek: Seek,
        neighbors: Sequence[PeerId],
        score: Score,
        alike: Collection[PeerId] = (),
    ) -> Hop:
        """A walker could not be sent to a peer: it is sent to another."""
        walk = self._walks.get(seek.request)
        if walk is None or seek.back or peer not in walk.tried:
            return Hop([], [_rejected(peer, Reason.UNREACHABLE, "a walker was lost")])
        return self._onward(walk, seek, neighbors, score, alike)

    def sought(self, peer: PeerId, answer: Sought, now: float) -> Hop:
        """An answer comes: it is for us, or goes back the way that the walker came."""
        walk = self._walks.get(answer.request)
        if walk is None or walk.until <= now or peer not in walk.tried:
            return Hop([], [_rejected(peer, Reason.STALE, "an answer to no search")])
        walk.answers += 1
        if walk.answers > _ANSWERS:
            note = "too many answers to one search"
            return Hop([], [Record(Kind.DROPPED, peer=peer, reason=Reason.TOO_MANY, note=note)])
        if walk.origin is not None:
            return Hop([(walk.origin, answer)], [])
        if walk.key is None or walk.topic is None:
            return Hop([], [])
        opened = open_answer(walk.key, walk.topic.ring, answer.request, answer.sealed)
        if opened is None:
            # It is of another topic, or says nothing: about every second node gives such an answer.
            return Hop([], [])
        try:
            member = _decoder.decode(opened)
        except MsgspecError:
            return Hop([], [_rejected(peer, Reason.MALFORMED, "a member wrote an answer that is none")])
        if not is_proof(walk.topic, member.node.peer, member.epoch, member.proof):
            return Hop([], [_rejected(peer, Reason.NOT_IN_TOPIC, "a member vouches for nobody")])
        return Hop([], [], Found(walk.topic.topic, member))

    def expire(self, now: float) -> None:
        """Forget walkers whose time is over: all have as much, so those that came first."""
        past = []
        for request, walk in self._walks.items():
            if walk.until > now:
                break
            past.append(request)
        for request in past:
            self._forget(request)

    def _check(self, seek: Seek) -> None:
        """Raise unless it asks for no more than a search needs."""
        most = (1 + _DECOYS) * self._config.filter_hashes
        if not 0 < len(set(seek.positions)) == len(seek.positions) <= most:
            raise MalformedMessage(f"a search for {len(seek.positions)} bits")
        if max(seek.positions) >= self._config.filter_bits:
            raise MalformedMessage("a search for bits that no filter has")
        if seek.hops > self._config.seek_hops:
            raise MalformedMessage(f"a search over {seek.hops} hops")

    def _answer(self, peer: PeerId, seek: Seek, own: Descriptor, shown: set[int]) -> Hop:
        """As many answers as our noisy bits say, true ones where we are a member of such a topic."""
        hop = Hop([], [])
        count = len(shown) // self._config.filter_hashes
        if not count:
            return hop
        true = [keys for keys in self._topics.values() if shown.issuperset(self._meant(keys, seek.epoch))]
        for keys in self._rng.sample(true, min(count, len(true))):
            member = RingMember(own, seek.epoch, proof(keys, own.peer, seek.epoch))
            try:
                sealed = self._seal(seek, keys.ring, _encoder.encode(member))
            except Refused as refused:
                hop.records.append(_dropped(keys.topic, refused))
                continue
            hop.sends.append((peer, Sought(seek.request, sealed)))
        while len(hop.sends) < count:
            sealed = self._seal(seek, self._entropy(KEY_BYTES), b"")
            hop.sends.append((peer, Sought(seek.request, sealed)))
        self._rng.shuffle(hop.sends)
        return hop

    def _answered(self, seek: Seek, own: Descriptor) -> set[int]:
        """The bits of a search that we answer to: those that our filter shows, and noisily the others."""
        if own.epoch != seek.epoch:
            return set()
        bits = int.from_bytes(own.filter, "little")
        if self._hidden[0] != seek.epoch or self._hidden[1] != own.filter:
            self._hidden = (seek.epoch, own.filter, self._unshown(seek.epoch, bits))
        hidden = self._hidden[2]
        return {
            position
            for position in seek.positions
            if bits >> position & 1 or (position in hidden) != self._is_flipped(seek.epoch, position)
        }

    def _unshown(self, epoch: int, bits: int) -> dict[int, None]:
        """The bits of our topics that these do not show all of."""
        hidden: dict[int, None] = {}
        for keys in self._topics.values():
            meant = self._meant(keys, epoch)
            if not all(bits >> position & 1 for position in meant):
                hidden.update(dict.fromkeys(meant))
        return hidden

    def _is_flipped(self, epoch: int, position: int) -> bool:
        """Whether the noise turns an answer about this bit around: for the whole epoch or never."""
        of, known, flipped = self._noise if self._noise[0] == epoch else (epoch, 0, 0)
        if not known >> position & 1:
            config = self._config
            place = epoch.to_bytes(8, "big") + position.to_bytes(4, "big")
            drawn = int.from_bytes(hmac.digest(self._key, _NOISE + place, "sha256")[:8], "big")
            known |= 1 << position
            if drawn < flip_probability(round(config.epsilon * 1000), config.filter_hashes) * 2**64:
                flipped |= 1 << position
            self._noise = (of, known, flipped)
        return bool(flipped >> position & 1)

    def _seal(self, seek: Seek, ring: bytes, answer: bytes) -> bytes:
        return seal_answer(seek.reply_key, ring, seek.request, answer, self._entropy)

    def _onward(
        self, walk: Walk, seek: Seek, neighbors: Sequence[PeerId], score: Score, alike: Collection[PeerId]
    ) -> Hop:
        """To the likeliest whom it has not been sent to; back if there is none; nowhere if it is tired."""
        if seek.hops <= 1:
            note = "a search has gone far enough"
            return Hop([], [Record(Kind.EXPIRED, peer=walk.origin, reason=Reason.OVERDUE, note=note)])
        free = [peer for peer in neighbors if peer not in walk.tried and peer != walk.origin]
        if not free:
            if walk.origin is None:
                note = "a search found no way on"
                return Hop([], [Record(Kind.EXPIRED, reason=Reason.NO_ADDRESS, note=note)])
            return self._back(walk.origin, seek)
        best = ranked(free, score, walk.bits, alike, self._rng)[0]
        walk.tried = (*walk.tried, best)
        return Hop([(best, structs.replace(seek, hops=seek.hops - 1, back=False))], [])

    def _back(self, peer: PeerId, seek: Seek) -> Hop:
        hops = max(0, seek.hops - 1)
        return Hop([(peer, structs.replace(seek, hops=hops, back=True))], [])

    def _meant(self, keys: TopicKeys, epoch: int) -> tuple[int, ...]:
        """The bits of a topic in an epoch."""
        bits = self._bits.get((keys.topic, epoch))
        if bits is None:
            config = self._config
            bits = positions(tag_in(keys, epoch), epoch, config.filter_bits, config.filter_hashes)
            self._bits = {at: known for at, known in self._bits.items() if abs(at[1] - epoch) <= 1}
            self._bits[keys.topic, epoch] = bits
        return bits

    def _disguised(self, keys: TopicKeys, epoch: int) -> tuple[int, ...]:
        """The bits of a topic among decoys, in rising order: the same whenever it is asked in an epoch."""
        bits = dict.fromkeys(self._meant(keys, epoch))
        whole = (1 + _DECOYS) * len(bits)
        secret = hmac.digest(self._key, _DECOY + tag_in(keys, epoch), "sha256")
        counter = 0
        while len(bits) < whole:
            drawn = hmac.digest(secret, counter.to_bytes(4, "big"), "sha256")
            bits[int.from_bytes(drawn[:8], "big") % self._config.filter_bits] = None
            counter += 1
        return tuple(sorted(bits))

    def _make_room(self, now: float) -> list[Record]:
        """Forget what is over, and if there are still too many walkers, the oldest."""
        if len(self._walks) < _WALKERS:
            return []
        self.expire(now)
        if len(self._walks) < _WALKERS:
            return []
        request = next(iter(self._walks))
        origin = self._walks[request].origin
        self._forget(request)
        return [Record(Kind.DROPPED, peer=origin, reason=Reason.TOO_MANY, note="a search was forgotten")]

    def _forget(self, request: bytes) -> None:
        origin = self._walks.pop(request).origin
        if origin is None:
            return
        left = self._of[origin] - 1
        if left:
            self._of[origin] = left
        else:
            del self._of[origin]


def _dropped(topic: TopicId, refused: Refused) -> Record:
    return Record(Kind.DROPPED, topic, reason=refused.reason, note=refused.detail)


def _rejected(peer: PeerId, reason: Reason, note: str) -> Record:
    return Record(Kind.REJECTED, peer=peer, reason=reason, note=note)
