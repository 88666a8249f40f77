"""One run of private set intersection: two nodes learn the topics that they have in common, and no others.

::

    initiator, a secret r for each x               responder, one secret b
        Intersect      X = r·H(x)            →
                                             ←     Intersected   Z = b·X, Y = b·H(y)
        shared: Z/r ∩ Y
        IntersectEnd   proofs                →
                                                   shared: what was proved
        proofs checked                       ←     IntersectEnd  proofs

It is the oblivious pseudorandom function of RFC 9497, evaluated by the responder for the initiator's
elements and for its own. X tells nothing at all, and to find out whether an element is among Y one has to
have had it evaluated. H binds it to both nodes, the initiator's nonce and the epoch, so no point of one run
means anything in another; secrets are fresh in each.

What is shared is claimed by proving it, with the topic's key, over the whole run and the prover's id. The
initiator proves first, and only where the responder has shown that it holds the tag: each x is blinded by
a secret of its own, so one match cannot be passed off as another, and a proof never reaches somebody who
might then try names on it. Both sets are filled up to one of three sizes with topics that nobody has; these
cost the same work, and the proofs of what is not shared are noise.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.overlay.trackerless.messages import POINTS, Intersect, Intersected, IntersectEnd
from linnet.overlay.trackerless.oblivious import Group
from linnet.overlay.trackerless.tags import KEY_BYTES, PROOF_BYTES, TopicKeys, tag_in

BUCKETS = (16, 64, POINTS)
"""A set is shown as having one of these sizes."""
NONCE_BYTES = 16

_CONTEXT = b"linnet/overlay/intersection/context/1"
_TRANSCRIPT = b"linnet/overlay/intersection/transcript/1"
_PROOF = b"linnet/overlay/intersection/proof/1"
_NOBODYS = TopicId(b"")


class Initiator:
    """The side that begins. Its secrets are in no representation."""

    def __init__(
        self,
        group: Group,
        ours: PeerId,
        peer: PeerId,
        topics: Iterable[TopicKeys],
        epoch: int,
        entropy: Entropy,
    ) -> None:
        self._group, self._ours, self._peer, self._entropy = group, ours, peer, entropy
        self.nonce = entropy(NONCE_BYTES)
        self._context = _context(ours, peer, self.nonce, epoch)
        self.topics = chosen(topics, self.nonce, epoch)
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
        """Whether the responder's points came, and so our proofs went out."""
        return self._transcript is not None

    def answered(self, answer: Intersected) -> IntersectEnd:
        """The responder's points; returns proofs of what is shared."""
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
            place = place_of.get(self._group.multiply(inverse, point))
            if place is not None:
                self._shared[place] = keys
        self._transcript = _transcript(self._context, sent, answer.twice, answer.blinded)
        self._places = places
        proofs = _prove(self._shared, places, self._transcript, self._ours, self._entropy)
        return IntersectEnd(self.nonce, proofs)

    def ended(self, end: IntersectEnd) -> tuple[TopicId, ...]:
        """The responder's proofs; returns the topics in common. Who lies about one is believed in none."""
        if self._transcript is None:
            raise RemoteError(Reason.MALFORMED, "ended before it was answered")
        _check_count(end.proofs, self._places)
        for place, keys in self._shared.items():
            if not _is_proof(keys, self._transcript, self._peer, end.proofs[place]):
                raise RemoteError(Reason.NOT_IN_TOPIC, "a tag was shown, and the topic's key was not")
        return tuple(keys.topic for keys in self._shared.values())


class Responder:
    """The side that is asked. Its secrets are in no representation."""

    def __init__(
        self,
        group: Group,
        ours: PeerId,
        peer: PeerId,
        topics: Iterable[TopicKeys],
        asked: Intersect,
        entropy: Entropy,
    ) -> None:
        self._ours, self._peer, self._entropy = ours, peer, entropy
        self.nonce = asked.nonce
        _check_size(asked.blinded)
        _check_new(asked.blinded, ())
        context = _context(peer, ours, asked.nonce, asked.epoch)
        secret = group.scalar(entropy)
        twice = tuple(group.multiply(secret, point) for point in asked.blinded)
        self.topics = chosen(topics, asked.nonce, asked.epoch)
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

    def ended(self, end: IntersectEnd) -> tuple[IntersectEnd, tuple[TopicId, ...]]:
        """The initiator's proofs; returns ours of the same, and the topics in common."""
        _check_count(end.proofs, len(self._own))
        shared = {
            place: keys
            for place, (keys, given) in enumerate(zip(self._own, end.proofs, strict=True))
            if _is_proof(keys, self._transcript, self._peer, given)
        }
        proofs = _prove(shared, len(self._own), self._transcript, self._ours, self._entropy)
        return IntersectEnd(self.nonce, proofs), tuple(keys.topic for keys in shared.values())


def refusal(nonce: bytes, reason: Reason) -> IntersectEnd:
    """Says that there is no intersection, and why."""
    return IntersectEnd(nonce, (), reason)


def bucket(size: int) -> int:
    """The size that a set of so many elements is shown with."""
    return next(step for step in BUCKETS if size <= step)


def chosen(topics: Iterable[TopicKeys], nonce: bytes, epoch: int) -> tuple[TopicKeys, ...]:
    """The topics of one run: all, or if there are too many, so many that both sides draw alike.

    Each tag has a place in an order that the nonce gives, and the first are taken: what two long lists
    have in common is then likely to be drawn by both, and other runs draw others.
    """
    distinct = list({keys.topic: keys for keys in topics}.values())
    if len(distinct) <= POINTS:
        return tuple(distinct)
    distinct.sort(key=lambda keys: sha256(nonce + tag_in(keys, epoch)).digest())
    return tuple(distinct[:POINTS])


def _filled(topics: Sequence[TopicKeys], entropy: Entropy) -> list[TopicKeys]:
    """The topics, and as many that nobody has as fill the bucket."""
    missing = bucket(len(topics)) - len(topics)
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
    """No point twice, and none that was in this run already: who mirrors has blinded nothing."""
    distinct = frozenset(points)
    if len(distinct) != len(points) or not distinct.isdisjoint(seen):
        raise RemoteError(Reason.DUPLICATE, "a point comes twice")


def _context(initiator: PeerId, responder: PeerId, nonce: bytes, epoch: int) -> bytes:
    return sha256(_CONTEXT + initiator + responder + nonce + epoch.to_bytes(8, "big")).digest()


def _transcript(context: bytes, *lists: tuple[bytes, ...]) -> bytes:
    """Everything that was said before the proofs; all points have the same size."""
    parts = [len(points).to_bytes(2, "big") + b"".join(points) for points in lists]
    return sha256(_TRANSCRIPT + context + b"".join(parts)).digest()


def _proof(ring: bytes, transcript: bytes, prover: PeerId) -> bytes:
    return hmac.digest(ring, _PROOF + transcript + prover, "sha256")[:PROOF_BYTES]


def _is_proof(keys: TopicKeys, transcript: bytes, prover: PeerId, given: bytes) -> bool:
    return hmac.compare_digest(_proof(keys.ring, transcript, prover), given)


def _prove(
    shared: Mapping[int, TopicKeys], places: int, transcript: bytes, prover: PeerId, entropy: Entropy
) -> tuple[bytes, ...]:
    """A proof in each place that is shared, and in the others one for a key that nobody has."""
    rings = (shared[place].ring if place in shared else entropy(KEY_BYTES) for place in range(places))
    return tuple(_proof(ring, transcript, prover) for ring in rings)
