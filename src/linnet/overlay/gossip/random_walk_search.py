"""Searches for members of topics by random walks: our own, and those of others that pass by."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from msgspec import MsgspecError, Struct, msgpack, structs
from nacl.bindings import crypto_scalarmult, crypto_scalarmult_base
from nacl.exceptions import RuntimeError as SodiumError

from linnet.core.errors import MalformedMessage, Refused
from linnet.core.ids import PeerId, TopicId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.messages import Descriptor, RingMember, Seek, Sought
from linnet.overlay.gossip.peer_gossip import PeerGossip
from linnet.overlay.gossip.profile_filter import bit_positions, flip_probability
from linnet.overlay.gossip.topic_tags import TopicKeys, is_proof, proof, tag_in
from linnet.trace.records import Kind, Record

_RARER = 2.0
"""The factor by which pause and reach grow with each search for a topic in a row."""
_NEAR = 0.25
"""The share of full reach and pause with which searching begins: most topics have members nearby, and what a
search costs others grows with the square of its reach."""
_KNOWN = 8.0
"""Pauses after finding a member until we look for more."""
_LONGEST = 64.0
"""The most pauses between searches: a topic of which we are the only member is searched for too, twice an
hour."""


class TopicSearches:
    """Decides when to look for members of a topic, and over which peers."""

    def __init__(self, gossip: PeerGossip, entropy: Entropy) -> None:
        self._gossip = gossip
        self._seeking = Walkers(gossip.config, gossip.rng, entropy, gossip.key)
        self._topics: dict[TopicId, None] = {}
        self._due: dict[TopicId, tuple[float, float]] = {}
        """When to look for a topic next, and how long to wait after that."""

    def add_topic(self, keys: TopicKeys) -> None:
        """Begin to search for a topic that we joined."""
        self._seeking.add_topic(keys)
        self._topics[keys.topic] = None

    def remove_topic(self, topic: TopicId) -> None:
        """Stop searching for a topic that we left."""
        self._seeking.remove_topic(topic)
        self._topics.pop(topic, None)
        self._due.pop(topic, None)

    def note_found(self, topic: TopicId, now: float) -> None:
        """Note that a member was found, which knows others: search only if these do not suffice."""
        pause = self._gossip.config.seek_pause * _KNOWN
        self._due[topic] = (now + pause, pause)

    def note_lost(self, topic: TopicId) -> None:
        """Note that no member is known any more: search at once."""
        self._due.pop(topic, None)

    def begin_search(self, keys: TopicKeys, now: float) -> None:
        """Look for members of a topic, unless that was done recently."""
        config = self._gossip.config
        due, pause = self._due.get(keys.topic, (now, config.seek_pause * _NEAR))
        along = self._find_ways() if now >= due else ()
        if not along:
            return
        self._due[keys.topic] = (now + pause, min(pause * _RARER, config.seek_pause * _LONGEST))
        epoch = self._gossip.own.epoch_at(now)
        hops = round(config.seek_hops * min(1.0, pause / config.seek_pause))
        hop = self._seeking.send_walkers(keys, epoch, self._weigh_ways(along), now, hops)
        self._send_hop(hop)

    def part_from(self, peer: PeerId) -> None:
        """Nothing is sent to a peer any more: no answer goes back to it."""
        self._seeking.forget_origin(peer)

    def expire_walks(self, now: float) -> None:
        """Forget the searches of others that are over."""
        self._seeking.expire_walks(now)

    def handle_seek(self, peer: PeerId, message: Seek, now: float) -> None:
        """Answer and pass on a search, or send it elsewhere if it came back."""
        own = self._gossip.own_profile(now).descriptor
        if self._topics:
            # Silence is an answer, too.
            self._gossip.budget.enter_answers(own.epoch, self._gossip.config.epsilon, now)
        along = [other for other in self._find_ways() if other != peer]
        self._send_hop(self._seeking.handle_seek(peer, message, own, self._weigh_ways(along), now))

    def handle_sought(self, peer: PeerId, message: Sought, now: float) -> Found | None:
        """Pass on an answer, or return the member that it names if it is for us."""
        hop = self._seeking.handle_sought(peer, message, now)
        self._send_hop(hop)
        return hop.found

    def handle_failure(self, peer: PeerId, message: Seek | Sought, now: float) -> None:
        """Send a search to another peer if one could not be reached; an answer is lost."""
        if isinstance(message, Sought):
            note = "an answer to a search"
            lost = Record(Kind.DROPPED, peer=peer, reason=Reason.UNREACHABLE, note=note)
            self._gossip.out.record(lost)
            return
        self._send_hop(self._seeking.handle_failure(peer, message, self._weigh_ways(self._find_ways())))

    def _weigh_ways(self, along: Sequence[PeerId]) -> Ways:
        # A bit that only few similar peers show is no reason to stay among them.
        return Ways(along, self._score_peer, dict.fromkeys(self._gossip.clustering.view))

    def _find_ways(self) -> Sequence[PeerId]:
        """Return the peers to which a search may go: similar ones, the fingers, and the sample."""
        gossip = self._gossip
        return list(
            dict.fromkeys((*gossip.clustering.view, *gossip.clustering.fingers, *gossip.sampling.view))
        )

    def _score_peer(self, peer: PeerId) -> tuple[int, float]:
        """Return the bits that a peer shows and their weight; nothing for a peer that shows none."""
        known = self._gossip.known.descriptor_of(peer)
        return (0, 0.0) if known is None else self._gossip.clustering.similarity.evidence(known)

    def _send_hop(self, hop: Hop) -> None:
        out = self._gossip.out
        for record in hop.records:
            out.record(record)
        for peer, message in hop.sends:
            if not self._gossip.requests.tell_peer(peer, self._gossip.hints_of(peer), message):
                note = f"{type(message).__name__}: too much waits for this link"
                out.record(Record(Kind.DROPPED, peer=peer, reason=Reason.QUEUE_FULL, note=note))


WALK = 60.0
"""Seconds for which a node remembers a walker, and with it the way back."""

_DECOYS = 3
"""Decoys for each true bit."""
_WALKERS = 2048
"""Walkers that are remembered at once."""
_OF_ONE = 256
"""Walkers that are remembered for one peer that sent them."""
_ANSWERS = 64
"""Answers that are passed back for one walker."""
_HIDDEN_START = 4
"""A walker begins with up to so many hops less than the limit: the first peer cannot tell that it is the
first."""
_DECOY = b"linnet/overlay/decoy/1"
_NOISE = b"linnet/overlay/answers/1"

_encoder = msgpack.Encoder()
_decoder = msgpack.Decoder(RingMember)


class Walk:
    """The state of one walker at a node."""

    __slots__ = ("answers", "bits", "key", "origin", "topic", "tried", "until")

    def __init__(self, origin: PeerId | None, bits: Sequence[int], until: float) -> None:
        self.origin = origin
        """The peer that the walker came from; None: it is our own."""
        self.bits = bits
        """The bits to look for in neighbours."""
        self.until = until
        self.tried: tuple[PeerId, ...] = ()
        self.answers = 0
        self.key: ReplyKey | None = None
        self.topic: TopicKeys | None = None
        """The topic that our own walker looks for."""


class Found(Struct, frozen=True, gc=False):
    """A member that a search found, with the proof of a peer that holds the ring's key."""

    topic: TopicId
    member: RingMember


class Hop(Struct, frozen=True, gc=False):
    """The result of handling a walker or an answer: messages, a found member, records."""

    sends: list[tuple[PeerId, Seek | Sought]]
    records: list[Record]
    found: Found | None = None


class Ways(NamedTuple):
    """The peers to which a walker may go, with their scores."""

    neighbors: Sequence[PeerId]
    score: Score
    alike: Collection[PeerId] = ()
    """The neighbours that were chosen for being similar to us."""


class Walkers:
    """The searches of a node, and those of others that pass by."""

    def __init__(self, config: TrackerlessConfig, rng: Random, entropy: Entropy, key: bytes) -> None:
        self._config = config
        self._rng = rng
        self._entropy = entropy
        self._key = key
        self._topics: dict[TopicId, TopicKeys] = {}
        self._walks: dict[bytes, Walk] = {}
        self._of: dict[PeerId, int] = {}
        """The number of remembered walkers that came from each peer."""
        self._bits: dict[tuple[TopicId, int], tuple[int, ...]] = {}
        self._noise = (-1, 0, 0)
        """For an epoch: the bits whose noise was drawn, and those of them that the noise flips."""
        self._hidden: tuple[int, bytes, dict[int, None]] = (-1, b"", {})
        """For an epoch and a filter: the bits of our topics that the filter does not show."""

    def __len__(self) -> int:
        return len(self._walks)

    def add_topic(self, keys: TopicKeys) -> None:
        """Let searches find us as a member of this topic."""
        self._topics[keys.topic] = keys
        self._hidden = (-1, b"", {})

    def remove_topic(self, topic: TopicId) -> None:
        """Let searches find us as a member no longer, and end our own for the topic."""
        self._topics.pop(topic, None)
        self._hidden = (-1, b"", {})
        self._bits = {at: bits for at, bits in self._bits.items() if at[0] != topic}
        for request in [r for r, walk in self._walks.items() if walk.topic and walk.topic.topic == topic]:
            self._forget_walk(request)

    def send_walkers(
        self,
        keys: TopicKeys,
        epoch: int,
        ways: Ways,
        now: float,
        hops: int | None = None,
    ) -> Hop:
        """Send out walkers, each to another of the likeliest neighbours, so many hops far at most.

        Only here the true bits count.
        """
        hop = Hop([], self._make_room(now))
        meant = self._bits_of(keys, epoch)
        shown = self._disguise_bits(keys, epoch)
        likeliest = rank_peers(ways.neighbors, ways.score, meant, ways.alike, self._rng)
        for peer in likeliest[: self._config.seek_walkers]:
            walk = Walk(None, meant, now + WALK)
            walk.key, walk.topic = reply_key(self._entropy), keys
            walk.tried = (peer,)
            request = self._entropy(16)
            self._walks[request] = walk
            left = max(1, (hops or self._config.seek_hops) - self._rng.randrange(_HIDDEN_START))
            hop.sends.append((peer, Seek(request, shown, epoch, walk.key.public, left, False)))
        return hop

    def handle_seek(self, peer: PeerId, seek: Seek, own: Descriptor, ways: Ways, now: float) -> Hop:
        """Handle a walker that passes by or comes back: answer it, pass it on, or send it back."""
        self._check_seek(seek)
        walk = self._walks.get(seek.request)
        if seek.back:
            if walk is None or peer not in walk.tried:
                return Hop([], [_rejected(peer, Reason.STALE, "a walker came back that was not sent")])
            return self._send_onward(walk, seek, ways)
        if walk is not None:
            return self._send_back(peer, seek)
        if self._of.get(peer, 0) >= _OF_ONE:
            self.expire_walks(now)
            if self._of.get(peer, 0) >= _OF_ONE:
                # No offence: it may only pass on the searches of many others.
                busy = Record(Kind.DROPPED, peer=peer, reason=Reason.TOO_MANY, note="a search was sent back")
                return Hop(self._send_back(peer, seek).sends, [busy])
        records = self._make_room(now)
        answered = self._find_answered(seek, own)
        # The bits that we answer are no reason to go on to similar peers: a decoy would keep it here.
        bits = tuple([bit for bit in seek.positions if bit not in answered])
        walk = self._walks[seek.request] = Walk(peer, bits, now + WALK)
        self._of[peer] = self._of.get(peer, 0) + 1
        try:
            answers = self._make_answers(peer, seek, own, answered)
        except MalformedMessage as error:
            # The peer that passed it on need not have noticed.
            return Hop([], [*records, _rejected(peer, error.reason, error.detail)])
        onward = self._send_onward(walk, seek, ways)
        return Hop([*answers.sends, *onward.sends], [*records, *answers.records, *onward.records])

    def handle_failure(self, peer: PeerId, seek: Seek, ways: Ways) -> Hop:
        """Send a walker to another peer, since one could not be reached."""
        walk = self._walks.get(seek.request)
        if walk is None or seek.back or peer not in walk.tried:
            return Hop([], [_rejected(peer, Reason.UNREACHABLE, "a walker was lost")])
        return self._send_onward(walk, seek, ways)

    def handle_sought(self, peer: PeerId, answer: Sought, now: float) -> Hop:
        """Handle an answer: take it, or send it back along the walker's way."""
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

    def forget_origin(self, peer: PeerId) -> None:
        """Forget the walkers that a peer sent."""
        for request in [request for request, walk in self._walks.items() if walk.origin == peer]:
            self._forget_walk(request)

    def expire_walks(self, now: float) -> None:
        """Forget walkers whose time is over: all have the same time, so the oldest."""
        past = []
        for request, walk in self._walks.items():
            if walk.until > now:
                break
            past.append(request)
        for request in past:
            self._forget_walk(request)

    def _check_seek(self, seek: Seek) -> None:
        """Raise unless the search asks for no more than a search needs."""
        most = (1 + _DECOYS) * self._config.filter_hashes
        if not 0 < len(set(seek.positions)) == len(seek.positions) <= most:
            raise MalformedMessage(f"a search for {len(seek.positions)} bits")
        if max(seek.positions) >= self._config.filter_bits:
            raise MalformedMessage("a search for bits that no filter has")
        if seek.hops > self._config.seek_hops:
            raise MalformedMessage(f"a search over {seek.hops} hops")

    def _make_answers(self, peer: PeerId, seek: Seek, own: Descriptor, shown: set[int]) -> Hop:
        """Make as many answers as our noisy bits tell, true ones for topics of which we are a member."""
        hop = Hop([], [])
        count = len(shown) // self._config.filter_hashes
        if not count:
            return hop
        true = [keys for keys in self._topics.values() if shown.issuperset(self._bits_of(keys, seek.epoch))]
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

    def _find_answered(self, seek: Seek, own: Descriptor) -> set[int]:
        """Return the bits of a search that we answer: those that our filter shows, and noisily the others."""
        if own.epoch != seek.epoch:
            return set()
        bits = int.from_bytes(own.filter, "little")
        if self._hidden[0] != seek.epoch or self._hidden[1] != own.filter:
            self._hidden = (seek.epoch, own.filter, self._find_hidden(seek.epoch, bits))
        hidden = self._hidden[2]
        return {
            position
            for position in seek.positions
            if bits >> position & 1 or (position in hidden) != self._is_flipped(seek.epoch, position)
        }

    def _find_hidden(self, epoch: int, bits: int) -> dict[int, None]:
        """Return the bits of those of our topics that these bits do not show completely."""
        hidden: dict[int, None] = {}
        for keys in self._topics.values():
            meant = self._bits_of(keys, epoch)
            if not all(bits >> position & 1 for position in meant):
                hidden.update(dict.fromkeys(meant))
        return hidden

    def _is_flipped(self, epoch: int, position: int) -> bool:
        """Return whether the noise flips the answer about this bit: for the whole epoch or never."""
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

    def _send_onward(self, walk: Walk, seek: Seek, ways: Ways) -> Hop:
        """Send a walker to the likeliest peer not tried; back if there is none; nowhere if its hops are used
        up."""
        if seek.hops <= 1:
            note = "a search has gone far enough"
            return Hop([], [Record(Kind.EXPIRED, peer=walk.origin, reason=Reason.OVERDUE, note=note)])
        free = [peer for peer in ways.neighbors if peer not in walk.tried and peer != walk.origin]
        if not free:
            if walk.origin is None:
                note = "a search found no way on"
                return Hop([], [Record(Kind.EXPIRED, reason=Reason.NO_ADDRESS, note=note)])
            return self._send_back(walk.origin, seek)
        best = rank_peers(free, ways.score, walk.bits, ways.alike, self._rng)[0]
        walk.tried = (*walk.tried, best)
        return Hop([(best, structs.replace(seek, hops=seek.hops - 1, back=False))], [])

    def _send_back(self, peer: PeerId, seek: Seek) -> Hop:
        hops = max(0, seek.hops - 1)
        return Hop([(peer, structs.replace(seek, hops=hops, back=True))], [])

    def _bits_of(self, keys: TopicKeys, epoch: int) -> tuple[int, ...]:
        """Return the bits of a topic in an epoch."""
        bits = self._bits.get((keys.topic, epoch))
        if bits is None:
            config = self._config
            bits = bit_positions(tag_in(keys, epoch), epoch, config.filter_bits, config.filter_hashes)
            self._bits = {at: known for at, known in self._bits.items() if abs(at[1] - epoch) <= 1}
            self._bits[keys.topic, epoch] = bits
        return bits

    def _disguise_bits(self, keys: TopicKeys, epoch: int) -> tuple[int, ...]:
        """Return the bits of a topic among decoys, in rising order: the same ones throughout an epoch."""
        bits = dict.fromkeys(self._bits_of(keys, epoch))
        whole = (1 + _DECOYS) * len(bits)
        secret = hmac.digest(self._key, _DECOY + tag_in(keys, epoch), "sha256")
        counter = 0
        while len(bits) < whole:
            drawn = hmac.digest(secret, counter.to_bytes(4, "big"), "sha256")
            bits[int.from_bytes(drawn[:8], "big") % self._config.filter_bits] = None
            counter += 1
        return tuple(sorted(bits))

    def _make_room(self, now: float) -> list[Record]:
        """Forget expired walkers, and if there are still too many, the oldest."""
        if len(self._walks) < _WALKERS:
            return []
        self.expire_walks(now)
        if len(self._walks) < _WALKERS:
            return []
        request = next(iter(self._walks))
        origin = self._walks[request].origin
        self._forget_walk(request)
        return [Record(Kind.DROPPED, peer=origin, reason=Reason.TOO_MANY, note="a search was forgotten")]

    def _forget_walk(self, request: bytes) -> None:
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


Score = Callable[[PeerId], tuple[int, float]]
"""Returns the bits that a peer shows, as a number, and the weight of each for a topic
(`profile_filter.evidence`)."""

_THEIRS = 0.3
"""Share of similar peers that show a bit if it belongs to a topic of theirs; by noise it is a tenth."""


def rank_peers(
    peers: Sequence[PeerId], score: Score, bits: Sequence[int], alike: Collection[PeerId], rng: Random
) -> list[PeerId]:
    """Sort peers, the likeliest first; among equals by lot.

    Similar peers have topics in common. So a bit that only few of them show is shown by noise, and no reason
    to stay among them; one that many show belongs to a topic of theirs.
    """
    shown = [score(peer) for peer in peers]
    near = [seen for peer, (seen, _) in zip(peers, shown, strict=True) if peer in alike]
    wanted = theirs = 0
    for bit in bits:
        wanted |= 1 << bit
        if near and sum([seen >> bit & 1 for seen in near]) >= _THEIRS * len(near):
            theirs |= 1 << bit
    lot = rng.random
    drawn = [
        ((seen & (theirs if peer in alike else wanted)).bit_count() * worth, lot(), peer)
        for peer, (seen, worth) in zip(peers, shown, strict=True)
    ]
    drawn.sort(reverse=True)
    return [peer for _, _, peer in drawn]


KEY_BYTES = 32
SEALED = 560
"""Bytes of every answer: a descriptor with a filter of 1,024 bits and two addresses, and some to spare."""

_TAG_BYTES = 16
_LENGTH_BYTES = 2
ROOM = SEALED - KEY_BYTES - _TAG_BYTES - _LENGTH_BYTES
"""Bytes that an answer may have before it is sealed."""

_LABEL = b"linnet/overlay/sought/1"
_NONCE = bytes(12)  # each key seals one answer


class ReplyKey(NamedTuple):
    """The key of one search. Its secret half is in no representation."""

    secret: bytes
    public: bytes

    def __repr__(self) -> str:
        return f"ReplyKey(public={self.public.hex()[:12]}…)"


def reply_key(entropy: Entropy) -> ReplyKey:
    """Make a new key."""
    secret = entropy(KEY_BYTES)
    return ReplyKey(secret, crypto_scalarmult_base(secret))


def seal_answer(to: bytes, ring: bytes, request: bytes, answer: bytes, entropy: Entropy) -> bytes:
    """Seal an answer for the holder of the secret of `to` and of the ring's key; `Refused` if it is too
    long."""
    if len(answer) > ROOM:
        raise Refused(Reason.TOO_LARGE, f"an answer of {len(answer)} bytes, {ROOM} at most")
    own = reply_key(entropy)
    key = _key(_agree(own.secret, to), ring, request, own.public, to)
    padded = len(answer).to_bytes(_LENGTH_BYTES, "big") + answer + bytes(ROOM - len(answer))
    return own.public + ChaCha20Poly1305(key).encrypt(_NONCE, padded, b"")


def open_answer(key: ReplyKey, ring: bytes, request: bytes, sealed: bytes) -> bytes | None:
    """Open an answer that was sealed to us under this ring's key; None if it is of another topic, or
    empty."""
    if len(sealed) != SEALED:
        return None
    theirs = sealed[:KEY_BYTES]
    try:
        derived = _key(_agree(key.secret, theirs), ring, request, theirs, key.public)
        padded = ChaCha20Poly1305(derived).decrypt(_NONCE, sealed[KEY_BYTES:], b"")
    except (InvalidTag, MalformedMessage):
        return None
    length = int.from_bytes(padded[:_LENGTH_BYTES], "big")
    return padded[_LENGTH_BYTES : _LENGTH_BYTES + length]


def _agree(secret: bytes, public: bytes) -> bytes:
    try:
        return crypto_scalarmult(secret, public)
    except SodiumError as error:
        raise MalformedMessage("a public key of low order") from error


def _key(shared: bytes, ring: bytes, request: bytes, answerer: bytes, seeker: bytes) -> bytes:
    """Derive a key by HKDF-SHA256 (RFC 5869) with the ring's key as its salt; one block."""
    secret = hmac.digest(ring, shared, "sha256")
    return hmac.digest(secret, _LABEL + request + answerer + seeker + b"\x01", "sha256")
