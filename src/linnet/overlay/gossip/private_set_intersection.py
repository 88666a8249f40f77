"""Private set intersections of a node: the protocol, how often it may run, and its outcomes.

A run tells the peer which of the topics that it can name are ours, up to 256 of them. So runs are few: one
with the same peer in ten minutes, and a limited number in an hour that others begin; as many that we begin
and that get far enough to disclose something. The outcome of a run is used for a day.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from importlib import import_module
from itertools import accumulate
from types import ModuleType
from typing import NamedTuple, Protocol

from msgspec import Struct

from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.messages import POINTS, Intersect, Intersected, IntersectEnd
from linnet.overlay.gossip.topic_tags import KEY_BYTES, PROOF_BYTES, TopicKeys, epoch_of, tag_in
from linnet.trace.records import Kind, Record

HOUR = 3600.0
_NOTE = "intersection"
_PATIENCE = 1.1
"""How much longer than the pause we wait before we ask again: the peer's clock started later."""
_LIFE = 10
"""Question timeouts for which a run waits: a link may have to be opened first."""


class Outcome(Struct, frozen=True, gc=False):
    """The outcome of a run."""

    topics: tuple[TopicId, ...]
    """The topics in common, proved by both."""
    asked: frozenset[TopicId]
    """Our topics that were in the run."""
    at: float

    def __repr__(self) -> str:
        return f"Outcome({len(self.topics)} of {len(self.asked)} topics)"


class Step(Struct, frozen=True, gc=False):
    """The result of a call."""

    send: Intersect | Intersected | IntersectEnd | None = None
    """The message for the peer."""
    outcome: Outcome | None = None
    """Set once the run is done."""
    fault: Reason | None = None
    """What was wrong in the peer's message: no honest node sends it."""
    records: tuple[Record, ...] = ()


class Tally(Struct, gc=False):
    """Counts of runs and their outcomes."""

    begun: int = 0
    """Runs begun by us."""
    answered: int = 0
    """Runs begun by others, and answered."""
    done: int = 0
    empty: int = 0
    """Completed runs without a common topic."""
    refused: int = 0
    """Runs refused by us."""


class _Hourly:
    """A limit of events in any hour."""

    __slots__ = ("_limit", "_times")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._times: deque[float] = deque()

    def count_free(self, now: float) -> int:
        """Return how many more are allowed."""
        while self._times and self._times[0] <= now - HOUR:
            self._times.popleft()
        return self._limit - len(self._times)

    def count_one(self, now: float) -> None:
        """Count one more."""
        self._times.append(now)


class Intersections:
    """The runs of a node with all its peers. It holds at most one in each direction with a peer.

    All its state is bounded by the hourly limits and by the times for which entries are remembered.
    """

    def __init__(self, ours: PeerId, config: TrackerlessConfig, group: Group, entropy: Entropy) -> None:
        self._config = config
        self._party = Party(ours, group, entropy)
        self._asking: dict[PeerId, tuple[float, Initiator]] = {}
        """Runs that we began, with the time until which we wait."""
        self._answering: dict[PeerId, tuple[float, Responder]] = {}
        self._last: dict[PeerId, float] = {}
        """When a run with a peer was last begun, oldest first."""
        self._outcomes: dict[PeerId, Outcome] = {}
        """Oldest first."""
        self._inbound = _Hourly(config.intersect_inbound)
        self._outbound = _Hourly(config.intersect_inbound)
        self.tally = Tally()

    def __len__(self) -> int:
        """Return the number of open runs."""
        return len(self._asking) + len(self._answering)

    @property
    def remembered(self) -> int:
        """The number of peers about which something is remembered."""
        return len(self._last.keys() | self._outcomes.keys())

    def find_outcome(self, peer: PeerId, now: float) -> Outcome | None:
        """Return the outcome of the last run with a peer, while it is used."""
        outcome = self._outcomes.get(peer)
        return outcome if outcome and now < outcome.at + self._config.intersect_memory else None

    def may_begin(self, peer: PeerId, topics: Iterable[TopicKeys], now: float) -> bool:
        """Return whether a run may be begun now, and could tell something new."""
        if peer == self._party.ours or peer in self._asking or peer in self._answering:
            return False
        last = self._last.get(peer)
        if last is not None and now < last + self._config.intersect_pause * _PATIENCE:
            return False
        known = self.find_outcome(peer, now)
        if known is not None and all(keys.topic in known.asked for keys in topics):
            return False
        waiting = sum(not side.is_answered for _, side in self._asking.values())
        return self._outbound.count_free(now) > waiting

    def begin_run(self, peer: PeerId, topics: Sequence[TopicKeys], now: float) -> Step:
        """Begin a run with exactly these topics."""
        records = self.expire_runs(now)
        if not self.may_begin(peer, topics, now):
            raise Refused(Reason.TOO_MANY, "an intersection with this peer now is one too many")
        epoch = epoch_of(now, self._config.epoch_days)
        side = Initiator(self._party, peer, topics, epoch)
        self._asking[peer] = (now + _LIFE * self._config.request_timeout, side)
        self._note_begun(peer, now)
        self.tally.begun += 1
        return Step(side.message, records=(*records, *_left_out(peer, topics, side.topics)))

    def handle_intersect(
        self, peer: PeerId, message: Intersect, topics: Sequence[TopicKeys], now: float
    ) -> Step:
        """Answer a peer that begins a run; exactly these topics of ours take part, and there may be none."""
        records = self.expire_runs(now)
        reason = self._find_objection(peer, message, now)
        if reason is not None:
            return self._refuse(peer, message.nonce, reason, records)
        # If both began at once, ours makes way.
        records += self.end_runs(peer, Reason.IN_USE)
        # The run counts before anything is computed, and whatever its outcome.
        self._inbound.count_one(now)
        self._note_begun(peer, now)
        try:
            side = Responder(self._party, peer, topics, message)
        except RemoteError as error:
            return self._refuse(peer, message.nonce, error.reason, records, error.reason)
        self._answering[peer] = (now + _LIFE * self._config.request_timeout, side)
        self.tally.answered += 1
        return Step(side.message, records=(*records, *_left_out(peer, topics, side.topics)))

    def handle_intersected(self, peer: PeerId, message: Intersected, now: float) -> Step:
        """Take in the answer to a run that we began."""
        records = self.expire_runs(now)
        side = self._asking.get(peer, (0.0, None))[1]
        if side is None or side.nonce != message.nonce:
            return self._refuse(peer, message.nonce, Reason.STALE, records)
        try:
            end = side.handle_answer(message)
        except RemoteError as error:
            del self._asking[peer]
            return self._refuse(peer, message.nonce, error.reason, records, error.reason)
        self._asking[peer] = (now + _LIFE * self._config.request_timeout, side)
        self._outbound.count_one(now)
        return Step(end, records=tuple(records))

    def handle_end(self, peer: PeerId, message: IntersectEnd, now: float) -> Step:
        """Take in the end of a run, whichever side began it, or a refusal."""
        records = self.expire_runs(now)
        asking = self._asking.get(peer, (0.0, None))[1]
        if asking is not None and asking.nonce == message.nonce:
            del self._asking[peer]
            return self._end_asking(peer, asking, message, records, now)
        answering = self._answering.get(peer, (0.0, None))[1]
        if answering is not None and answering.nonce == message.nonce:
            del self._answering[peer]
            return self._end_answering(peer, answering, message, records, now)
        if message.refused is None:
            records.append(_record(Kind.REJECTED, peer, Reason.STALE))
        # A refusal of a run that is not open means nothing: both had begun, or it was given up meanwhile.
        return Step(records=tuple(records))

    def end_runs(self, peer: PeerId, reason: Reason = Reason.LOST) -> list[Record]:
        """End the open runs with a peer whose link is closed, or that was given up."""
        runs = (self._asking.pop(peer, None), self._answering.pop(peer, None))
        return [_record(Kind.DROPPED, peer, reason) for run in runs if run is not None]

    def expire_runs(self, now: float) -> list[Record]:
        """End runs that have waited too long, and forget old entries."""
        records: list[Record] = []
        for peer in [peer for peer, (due, _) in self._asking.items() if due <= now]:
            del self._asking[peer]
            records.append(_record(Kind.EXPIRED, peer, Reason.TIMEOUT))
        for peer in [peer for peer, (due, _) in self._answering.items() if due <= now]:
            del self._answering[peer]
            records.append(_record(Kind.EXPIRED, peer, Reason.TIMEOUT))
        self._forget_old(now)
        return records

    def _forget_old(self, now: float) -> None:
        while self._last:
            peer, at = next(iter(self._last.items()))
            if now < at + self._config.intersect_pause * _PATIENCE:
                break
            del self._last[peer]
        while self._outcomes:
            peer, outcome = next(iter(self._outcomes.items()))
            if now < outcome.at + self._config.intersect_memory:
                break
            del self._outcomes[peer]

    def _find_objection(self, peer: PeerId, message: Intersect, now: float) -> Reason | None:
        """Return why we do not answer, if there is a reason."""
        if abs(message.epoch - epoch_of(now, self._config.epoch_days)) > 1:
            return Reason.WRONG_EPOCH
        if self._inbound.count_free(now) <= 0:
            return Reason.PROBING
        asking = self._asking.get(peer, (0.0, None))[1]
        if asking is not None:
            # Both began at once. The lower key's run is the one, and this holds on both sides.
            return Reason.IN_USE if self._party.ours < peer or asking.is_answered else None
        last = self._last.get(peer)
        if last is not None and now < last + self._config.intersect_pause:
            return Reason.PROBING
        return None

    def _note_begun(self, peer: PeerId, now: float) -> None:
        self._last.pop(peer, None)
        self._last[peer] = now

    def _refuse(
        self,
        peer: PeerId,
        nonce: bytes,
        reason: Reason,
        records: list[Record],
        fault: Reason | None = None,
    ) -> Step:
        self.tally.refused += 1
        rejected = _record(Kind.REJECTED, peer, reason)
        return Step(make_refusal(nonce, reason), fault=fault, records=(*records, rejected))

    def _end_asking(
        self, peer: PeerId, side: Initiator, message: IntersectEnd, records: list[Record], now: float
    ) -> Step:
        if message.refused is not None:
            return Step(records=(*records, _record(Kind.DROPPED, peer, message.refused)))
        try:
            common = side.handle_end(message)
        except RemoteError as error:
            # The peer waits for nothing any more, so it is told nothing.
            rejected = _record(Kind.REJECTED, peer, error.reason)
            return Step(fault=error.reason, records=(*records, rejected))
        return Step(outcome=self._note_done(peer, side.topics, common, now), records=tuple(records))

    def _end_answering(
        self, peer: PeerId, side: Responder, message: IntersectEnd, records: list[Record], now: float
    ) -> Step:
        if message.refused is not None:
            return Step(records=(*records, _record(Kind.DROPPED, peer, message.refused)))
        try:
            end, common = side.handle_end(message)
        except RemoteError as error:
            return self._refuse(peer, message.nonce, error.reason, records, error.reason)
        return Step(end, self._note_done(peer, side.topics, common, now), records=tuple(records))

    def _note_done(
        self, peer: PeerId, asked: tuple[TopicKeys, ...], common: tuple[TopicId, ...], now: float
    ) -> Outcome:
        self.tally.done += 1
        self.tally.empty += not common
        self._outcomes.pop(peer, None)
        outcome = Outcome(common, frozenset(keys.topic for keys in asked), now)
        self._outcomes[peer] = outcome
        return outcome


def _left_out(peer: PeerId, topics: Sequence[TopicKeys], taken: tuple[TopicKeys, ...]) -> list[Record]:
    left = len({keys.topic: None for keys in topics}) - len(taken)
    if not left:
        return []
    return [Record(Kind.DROPPED, peer=peer, reason=Reason.TOO_MANY, events=left, note=_NOTE)]


def _record(kind: Kind, peer: PeerId, reason: Reason) -> Record:
    return Record(kind, peer=peer, reason=reason, note=_NOTE)


BUCKETS = (16, 64, POINTS)
"""The sizes to one of which a set is filled up."""
NONCE_BYTES = 16

_CONTEXT = b"linnet/overlay/intersection/context/1"
_TRANSCRIPT = b"linnet/overlay/intersection/transcript/1"
_PROOF = b"linnet/overlay/intersection/proof/1"
_NOBODYS = TopicId(b"")


class Party(NamedTuple):
    """A node in its runs: its id, the group that they use, and the source of its secrets."""

    ours: PeerId
    group: Group
    entropy: Entropy


class Initiator:
    """The side that begins a run. Its secrets are in no representation."""

    def __init__(self, party: Party, peer: PeerId, topics: Iterable[TopicKeys], epoch: int) -> None:
        self._party, self._peer = party, peer
        ours, group, entropy = party
        self.nonce = entropy(NONCE_BYTES)
        self._context = _context(ours, peer, self.nonce, epoch)
        self.topics = choose_topics(topics, self.nonce, epoch)
        elements = _filled(self.topics, entropy)
        secrets = [group.scalar(entropy) for _ in elements]
        points = [
            group.multiply(secret, _element(group, self._context, keys, epoch))
            for secret, keys in zip(secrets, elements, strict=True)
        ]
        # Points look random, so to order them by themselves hides which is which.
        own = sorted(zip(points, group.inverses(secrets), elements, strict=True), key=_by_point)
        self._own = [(inverse, keys) for _, inverse, keys in own]
        self.message = Intersect(self.nonce, epoch, tuple(point for point, _, _ in own))
        self._transcript: bytes | None = None
        self._shared: dict[int, TopicKeys] = {}
        self._places = 0

    @property
    def is_answered(self) -> bool:
        """Whether the responder's points have arrived, so that our proofs were sent."""
        return self._transcript is not None

    def handle_answer(self, answer: Intersected) -> IntersectEnd:
        """Take in the responder's points; return proofs of the shared topics."""
        sent, places = self.message.blinded, len(answer.blinded)
        if self.is_answered:
            raise RemoteError(Reason.MALFORMED, "answered twice")
        if len(answer.twice) != len(sent):
            raise RemoteError(Reason.MALFORMED, "as many points are to come back as were sent")
        _check_size(answer.blinded)
        _check_new(answer.blinded, sent)
        _check_new(answer.twice, sent + answer.blinded)
        place_of = {point: place for place, point in enumerate(answer.blinded)}
        for point, (inverse, keys) in zip(answer.twice, self._own, strict=True):
            place = place_of.get(self._party.group.multiply(inverse, point))
            if place is not None:
                self._shared[place] = keys
        self._transcript = _transcript(self._context, sent, answer.twice, answer.blinded)
        self._places = places
        proofs = _prove(self._shared, places, self._transcript, self._party)
        return IntersectEnd(self.nonce, proofs)

    def handle_end(self, end: IntersectEnd) -> tuple[TopicId, ...]:
        """Check the responder's proofs; return the common topics. One false proof discredits all."""
        if self._transcript is None:
            raise RemoteError(Reason.MALFORMED, "ended before it was answered")
        _check_count(end.proofs, self._places)
        for place, keys in self._shared.items():
            if not _is_proof(keys, self._transcript, self._peer, end.proofs[place]):
                raise RemoteError(Reason.NOT_IN_TOPIC, "a tag was shown, and the topic's key was not")
        return tuple(keys.topic for keys in self._shared.values())


class Responder:
    """The side that answers a run. Its secrets are in no representation."""

    def __init__(self, party: Party, peer: PeerId, topics: Iterable[TopicKeys], asked: Intersect) -> None:
        self._party, self._peer = party, peer
        ours, group, entropy = party
        self.nonce = asked.nonce
        _check_size(asked.blinded)
        _check_new(asked.blinded, ())
        context = _context(peer, ours, asked.nonce, asked.epoch)
        secret = group.scalar(entropy)
        twice = tuple(group.multiply(secret, point) for point in asked.blinded)
        self.topics = choose_topics(topics, asked.nonce, asked.epoch)
        own = sorted(
            (
                (group.multiply(secret, _element(group, context, keys, asked.epoch)), keys)
                for keys in _filled(self.topics, entropy)
            ),
            key=_by_point,
        )
        self._own = [keys for _, keys in own]
        self.message = Intersected(asked.nonce, twice, tuple(point for point, _ in own))
        self._transcript = _transcript(context, asked.blinded, twice, self.message.blinded)

    def handle_end(self, end: IntersectEnd) -> tuple[IntersectEnd, tuple[TopicId, ...]]:
        """Check the initiator's proofs; return ours for the same topics, and the common topics."""
        _check_count(end.proofs, len(self._own))
        shared = {
            place: keys
            for place, (keys, given) in enumerate(zip(self._own, end.proofs, strict=True))
            if _is_proof(keys, self._transcript, self._peer, given)
        }
        proofs = _prove(shared, len(self._own), self._transcript, self._party)
        return IntersectEnd(self.nonce, proofs), tuple(keys.topic for keys in shared.values())


def make_refusal(nonce: bytes, reason: Reason) -> IntersectEnd:
    """Make the message that refuses an intersection, with the reason."""
    return IntersectEnd(nonce, (), reason)


def bucket_of(size: int) -> int:
    """Return the size with which a set of so many elements is shown."""
    return next(step for step in BUCKETS if size <= step)


def choose_topics(topics: Iterable[TopicKeys], nonce: bytes, epoch: int) -> tuple[TopicKeys, ...]:
    """Choose the topics of one run: all, or if there are too many, a sample on which both sides agree.

    Each tag has a place in an order that the nonce gives, and the first are taken: so both sides likely draw
    the topics that two long lists have in common, and other runs draw others.
    """
    distinct = list({keys.topic: keys for keys in topics}.values())
    if len(distinct) <= POINTS:
        return tuple(distinct)
    distinct.sort(key=lambda keys: sha256(nonce + tag_in(keys, epoch)).digest())
    return tuple(distinct[:POINTS])


def _filled(topics: Sequence[TopicKeys], entropy: Entropy) -> list[TopicKeys]:
    """Return the topics, with dummies that fill the bucket."""
    missing = bucket_of(len(topics)) - len(topics)
    return [*topics, *(TopicKeys(_NOBODYS, entropy(KEY_BYTES), entropy(KEY_BYTES)) for _ in range(missing))]


def _element(group: Group, context: bytes, keys: TopicKeys, epoch: int) -> bytes:
    return group.hash_to_group(context + tag_in(keys, epoch))


def _by_point(element: tuple[bytes, *tuple[object, ...]]) -> bytes:
    return element[0]


def _check_size(points: tuple[bytes, ...]) -> None:
    if len(points) not in BUCKETS:
        raise RemoteError(Reason.MALFORMED, "a set is filled up to one of the sizes agreed")


def _check_count(proofs: tuple[bytes, ...], places: int) -> None:
    if len(proofs) != places:
        raise RemoteError(Reason.MALFORMED, "not as many proofs as are due")


def _check_new(points: tuple[bytes, ...], seen: tuple[bytes, ...]) -> None:
    """Raise if a point appears twice, or appeared in this run before: a peer that mirrors has blinded
    nothing."""
    distinct = frozenset(points)
    if len(distinct) != len(points) or not distinct.isdisjoint(seen):
        raise RemoteError(Reason.DUPLICATE, "a point comes twice")


def _context(initiator: PeerId, responder: PeerId, nonce: bytes, epoch: int) -> bytes:
    return sha256(_CONTEXT + initiator + responder + nonce + epoch.to_bytes(8, "big")).digest()


def _transcript(context: bytes, *lists: tuple[bytes, ...]) -> bytes:
    """Hash all messages before the proofs; all points have the same size."""
    parts = [len(points).to_bytes(2, "big") + b"".join(points) for points in lists]
    return sha256(_TRANSCRIPT + context + b"".join(parts)).digest()


def _proof(ring: bytes, transcript: bytes, prover: PeerId) -> bytes:
    return hmac.digest(ring, _PROOF + transcript + prover, "sha256")[:PROOF_BYTES]


def _is_proof(keys: TopicKeys, transcript: bytes, prover: PeerId, given: bytes) -> bool:
    return hmac.compare_digest(_proof(keys.ring, transcript, prover), given)


def _prove(
    shared: Mapping[int, TopicKeys], places: int, transcript: bytes, prover: Party
) -> tuple[bytes, ...]:
    """Make a proof in each place that is shared, and in each other place one for a random key."""
    rings = (shared[place].ring if place in shared else prover.entropy(KEY_BYTES) for place in range(places))
    return tuple(_proof(ring, transcript, prover.ours) for ring in rings)


POINT_BYTES = 32
SCALAR_BYTES = 32
WIDE_BYTES = 64
"""Bytes that a point or scalar is made of: so many more than it has that it is practically uniform."""
DST = b"linnet/overlay/intersection/1-ristretto255_XMD:SHA-512_R255MAP_RO_"
"""Domain separation: nothing else hashes to the group with it."""

_BLOCK = 128
_DIGEST = 64


class Group(Protocol):
    """The group operations of an intersection: elements without known logarithm, and their blinding."""

    def hash_to_group(self, data: bytes) -> bytes:
        """Return the element that stands for these bytes."""

    def scalar(self, entropy: Entropy) -> bytes:
        """Draw a secret to blind with, never zero."""

    def inverses(self, scalars: Sequence[bytes]) -> list[bytes]:
        """Return the scalars that undo blinding with these."""

    def multiply(self, scalar: bytes, point: bytes) -> bytes:
        """Blind a point; raise `RemoteError` if it is no point, or the identity."""


class Ristretto:
    """ristretto255 with SHA-512."""

    def hash_to_group(self, data: bytes, dst: bytes = DST) -> bytes:
        """Return the element that stands for these bytes under this tag (RFC 9380, appendix B)."""
        return self.map_to_group(expand_message(data, dst, WIDE_BYTES))

    def map_to_group(self, wide: bytes) -> bytes:
        """Return the element derived from 64 uniform bytes (RFC 9496, section 4.3.4)."""
        return bytes(_library().crypto_core_ristretto255_from_hash(wide))

    def scalar(self, entropy: Entropy) -> bytes:
        """Draw a secret to blind with, never zero."""
        while not any(scalar := self.reduce(entropy(WIDE_BYTES))):
            pass
        return scalar

    def reduce(self, wide: bytes) -> bytes:
        """Reduce 64 bytes to a scalar, modulo the order of the group."""
        return bytes(_library().crypto_core_ristretto255_scalar_reduce(wide))

    def inverses(self, scalars: Sequence[bytes]) -> list[bytes]:
        """Return the scalars that undo blinding with these; none may be zero.

        Only the product of all is inverted, and the inverses follow by multiplication, which is far cheaper.
        """
        products = list(accumulate(scalars, _times))
        inverse = bytes(_library().crypto_core_ristretto255_scalar_invert(products[-1]))
        found: list[bytes] = []
        for scalar, before in zip(reversed(scalars), [*products[-2::-1], None], strict=True):
            found.append(inverse if before is None else _times(inverse, before))
            inverse = _times(inverse, scalar)
        return found[::-1]

    def multiply(self, scalar: bytes, point: bytes) -> bytes:
        """Blind a point; raise `RemoteError` for any other encoding and for the identity."""
        if len(point) != POINT_BYTES:
            raise RemoteError(Reason.MALFORMED, f"a point has {POINT_BYTES} bytes")
        try:
            return bytes(_library().crypto_scalarmult_ristretto255(scalar, point))
        except RuntimeError:
            # From nothing, for the library's own words are of the scalar as much as of the point.
            raise RemoteError(Reason.MALFORMED, "no point of the group, or its identity") from None


RISTRETTO = Ristretto()


def expand_message(data: bytes, dst: bytes, size: int) -> bytes:
    """Compute `expand_message_xmd` of RFC 9380, section 5.3.1, with SHA-512."""
    if len(dst) > 255 or not 0 < size <= 255 * _DIGEST:
        raise Refused(Reason.TOO_LARGE, "the tag or what is asked for is longer than RFC 9380 allows")
    tag = dst + bytes((len(dst),))
    whole = bytes(_BLOCK) + data + size.to_bytes(2, "big") + b"\x00" + tag
    first = hashlib.sha512(whole).digest()
    block = hashlib.sha512(first + b"\x01" + tag).digest()
    out = block
    for count in range(2, -(-size // _DIGEST) + 1):
        mixed = (int.from_bytes(first, "big") ^ int.from_bytes(block, "big")).to_bytes(_DIGEST, "big")
        block = hashlib.sha512(mixed + bytes((count,)) + tag).digest()
        out += block
    return out[:size]


def _times(one: bytes, other: bytes) -> bytes:
    return bytes(_library().crypto_core_ristretto255_scalar_mul(one, other))


class _Library:
    """libsodium, loaded when it is first needed."""

    def __init__(self) -> None:
        self.load: Callable[[], ModuleType] = lambda: import_module("rbcl")
        self._loaded: ModuleType | None = None

    def __call__(self) -> ModuleType:
        if self._loaded is None:
            self._loaded = self.load()
        return self._loaded


_library = _Library()


def load_by(load: Callable[[], ModuleType]) -> None:
    """Set the function that loads the library when it is first needed: where its file is concerns the
    driver."""
    _library.load = load
