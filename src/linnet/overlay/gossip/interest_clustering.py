"""Clustering by interests: finds similar peers by asking peers that are similar already, and keeps a few
unlike ones.

Like Vicinity (Voulgaris, van Steen 2005), with filters in place of profiles and trust beside similarity
(UPSYCLE 2020). Candidates come from the answers of other peers and from our own random sample, without which
nodes get stuck in the first cluster they find. The unlike peers, fingers, let searches leave a cluster.
Similarity to us is judged with our exact topics, which no other node can do for us; other nodes only
preselect.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from random import Random

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.descriptor import DescriptorCheck, believing
from linnet.overlay.gossip.known_peers import KnownPeers
from linnet.overlay.gossip.messages import POINTS, Descriptor
from linnet.overlay.gossip.peer_sampling import HeardPeers
from linnet.overlay.gossip.profile_filter import (
    Interests,
    ShownFilter,
    common_topics,
    cosine,
    evidence,
    is_contradicted,
    is_credible,
    read_filter,
)
from linnet.overlay.gossip.trust import Trust
from linnet.trace.records import Kind, Record

ENTRIES = 3
"""Nodes of one answer that may enter the view: else one liar could fill it with accomplices."""
RECALLED = 20
"""Known peers, whoever named them, that are weighed against the view in each round: as many as an answer to a
pull names. A liar that seems similar names liars alone, and so would fill the view bit by bit; weighed
against all known peers they get no more than their share of it."""
AT_RANDOM = 2
"""Nodes of our random sample that an answer holds, similar or not."""
CONTRADICTIONS = 2
"""Intersections that find far less than a filter promised, until the filter counts as a lie."""
_COMPLETE = 0.75 * POINTS
"""Topics up to which an intersection surely covers all, and so may contradict a filter."""
_TABLE = 1024
_WORTH_ROUNDS = 5
"""Rounds for which a score is used: trust in a peer changes slowly."""
_ASKED = 64

_believing = believing()


class InterestClustering:
    """The most similar peers and the fingers of one node. It sends no messages itself."""

    def __init__(
        self,
        ours: PeerId,
        config: TrackerlessConfig,
        acquaintances: KnownPeers,
        trust: Trust,
        rng: Random,
        check: DescriptorCheck = _believing,
    ) -> None:
        self._ours = ours
        self._config = config
        self._acquaintances = acquaintances
        self._trust = trust
        self._rng = rng
        self.similarity = InterestSimilarity()
        """Compares filters with our topics; give it our topics with `set_interests`."""
        self._fingers = Fingers(ours, config, acquaintances, trust, self.similarity, rng)
        self._hearsay = HeardPeers(ours, acquaintances, trust, check, self.drop_peer)
        self._view: dict[PeerId, float] = {}
        """The most similar peers with their scores, best first."""
        self._asked: dict[PeerId, None] = {}
        """Peers taken out of the view until they answer."""
        self._avoided: dict[PeerId, int] = {}
        """Versions of descriptors whose nodes did not answer, or promised too much."""
        self._contradicted: dict[PeerId, int] = {}

    @property
    def view(self) -> tuple[PeerId, ...]:
        """The most similar peers, best first."""
        return tuple(self._view)

    @property
    def fingers(self) -> tuple[PeerId, ...]:
        """Peers that are quite unlike us."""
        return self._fingers.peers

    def score_peer(self, descriptor: Descriptor, now: float) -> float:
        """Return the score of a peer: similarity^(2-e) · trust^e, the larger the better."""
        weight = self._config.trust_weight
        likeness = self.similarity.cosine(descriptor) ** (2 - weight)
        return float(likeness * self._trust.trust_in(descriptor.peer, now) ** weight)

    def choose_target(self, sample: Sequence[PeerId]) -> PeerId | None:
        """Choose the peer to ask: the similar one not heard of for longest, else one of the sample."""
        if self._view:
            peer = max(self._view, key=self._acquaintances.age_of)
            del self._view[peer]
            self._asked[peer] = None
            if len(self._asked) > _ASKED:
                self._release_peer(next(iter(self._asked)))
            return peer
        others = [peer for peer in sample if peer != self._ours]
        return self._rng.choice(others) if others else None

    def choose_alike(
        self,
        requester: Descriptor,
        sample: Sequence[PeerId],
        members: Iterable[PeerId],
        own: Descriptor,
        now: float,
    ) -> tuple[Descriptor, ...]:
        """Return nodes that seem similar to the one that asks, with two random ones; trust plays no part in
        it."""
        told = {
            peer: one
            for peer in sample
            if (one := self._fresh_descriptor(peer, requester.peer, now)) is not None
        }
        known = {own.peer: own, **told}
        for peer in (*self._view, *members):
            if (
                peer not in known
                and (descriptor := self._fresh_descriptor(peer, requester.peer, now)) is not None
            ):
                known[peer] = descriptor
        start = int(self._rng.random() * len(known))
        candidates = list(known.values())
        candidates = candidates[start:] + candidates[:start]  # Among equals anyone may come first.
        common = self.similarity.common_bits(requester, candidates)
        likest = sorted(range(len(candidates)), key=common.__getitem__, reverse=True)
        chosen = [candidates[at] for at in likest[: self._config.gossip - AT_RANDOM]]
        best = {candidate.peer: candidate for candidate in chosen}
        rest = [descriptor for peer, descriptor in told.items() if peer not in best]
        return (*best.values(), *self._rng.sample(rest, min(AT_RANDOM, len(rest))))

    def handle_answer(
        self, peer: PeerId, descriptors: Sequence[Descriptor], sample: Sequence[PeerId], now: float
    ) -> list[Record]:
        """Take in an answer: keep the best of the view, the sample, and three of the nodes that it names."""
        named, records = self._hearsay.check_named(peer, descriptors, self._config.gossip, now)
        came_back = [peer] if self._asked.pop(peer, self) is None else []
        recalled = [node for node in self._acquaintances.take_next(RECALLED) if node not in named]
        pool = {
            node: None for node in (*self._view, *came_back, *sample, *recalled) if node not in self._asked
        }
        strangers = [node for node in named if node not in pool and node not in self._asked]
        scores = self._scores(strangers, now)
        entering = sorted(scores, key=scores.__getitem__, reverse=True)[:ENTRIES]
        self._keep_best(self._scores((*pool, *entering), now), came_back)
        return records

    def refresh_fingers(self, sample: Sequence[PeerId], now: float) -> None:
        """Count a round: one finger may be taken or replaced, from the sample alone."""
        self._fingers.refresh(sample, now)

    def note_failure(self, peer: PeerId) -> None:
        """Take a peer that did not answer out of the view until it has a new descriptor."""
        self._avoid_peer(peer)
        self.drop_peer(peer)

    def drop_peer(self, peer: PeerId) -> None:
        """Take a peer out of the view and the fingers."""
        self._release_peer(peer)
        self._fingers.drop_peer(peer)

    def handle_intersection(self, peer: PeerId, common: int, now: float) -> list[Record]:
        """Compare the common topics that an intersection found with those that the peer's filter promised."""
        descriptor = self._acquaintances.descriptor_of(peer)
        own = None if descriptor is None else self.similarity.own_interests(descriptor)
        shown = None if descriptor is None else self.similarity.find_filter(descriptor)
        if own is None or shown is None or max(own.topics, shown.ones) > _COMPLETE:
            return []
        if not is_contradicted(own, shown, common):
            self._contradicted.pop(peer, None)
            return []
        times = self._contradicted.pop(peer, 0) + 1
        if times >= CONTRADICTIONS:
            self._trust.note_offence(peer, now)
        else:
            _remember(self._contradicted, peer, times)
        self.note_failure(peer)
        note = "an intersection found less than the filter promised"
        return [Record(Kind.REJECTED, peer=peer, reason=Reason.IMPLAUSIBLE_FILTER, note=note)]

    def _scores(self, peers: Iterable[PeerId], now: float) -> dict[PeerId, float]:
        """Return the scores of peers that score above zero."""
        scores = {}
        avoided, known, serial = self._avoided, self._acquaintances.get, self.similarity.serial
        for peer in peers:
            one = known(peer)
            if one is None or peer == self._ours:
                continue
            descriptor, of = one.descriptor, one.worth_of
            if descriptor.expires < now or avoided.get(peer, -1) >= descriptor.version:
                continue
            if of is None or of[0] is not descriptor or of[1] != serial or of[2] <= now:
                one.worth = self.score_peer(descriptor, now)
                one.worth_of = (descriptor, serial, now + _WORTH_ROUNDS * self._config.period)
            if one.worth > 0.0 and not self._trust.is_banned(peer, now):
                scores[peer] = one.worth
        return scores

    def _keep_best(self, scores: dict[PeerId, float], came_back: Iterable[PeerId]) -> None:
        """Make the best peers the view."""
        best = sorted(scores, key=scores.__getitem__, reverse=True)[: self._config.close]
        pinned = (*self._view, *came_back)
        view = {peer: scores[peer] for peer in best}
        for peer in view:
            if peer not in pinned:
                self._acquaintances.pin_peer(peer)
        for peer in pinned:
            if peer not in view:
                self._acquaintances.unpin_peer(peer)
        self._view = view

    def _release_peer(self, peer: PeerId) -> None:
        if self._view.pop(peer, None) is not None or self._asked.pop(peer, self) is None:
            self._acquaintances.unpin_peer(peer)

    def _fresh_descriptor(self, peer: PeerId, other: PeerId, now: float) -> Descriptor | None:
        """Return the descriptor of `peer`, unless it is `other`, if it may be used and passed on."""
        descriptor = self._acquaintances.descriptor_of(peer)
        if peer == other or descriptor is None or descriptor.expires < now:
            return None
        return None if self._trust.is_banned(peer, now) else descriptor

    def _avoid_peer(self, peer: PeerId) -> None:
        descriptor = self._acquaintances.descriptor_of(peer)
        if descriptor is not None:
            _remember(self._avoided, peer, descriptor.version)


def _remember(table: dict[PeerId, int], peer: PeerId, value: int) -> None:
    """Write to a table that forgets its oldest entry when it is full."""
    table.pop(peer, None)
    if len(table) >= _TABLE:
        del table[next(iter(table))]
    table[peer] = value


REMEMBERED = 4096
_EPOCHS = 2


class _Judged:
    """The results of judging one descriptor."""

    __slots__ = ("cosine", "descriptor", "evidence", "is_credible", "noisy", "serial", "shown")

    def __init__(self, descriptor: Descriptor) -> None:
        self.descriptor = descriptor
        self.shown = read_filter(descriptor)
        self.is_credible = is_credible(self.shown)
        self.noisy = self.shown.bits.bit_count()
        self.cosine = 0.0
        self.evidence: tuple[int, float] | None = None
        self.serial = -1
        """The version of our own interests that the similarity was computed with."""


class InterestSimilarity:
    """Compares filters with our own topics. A filter that is not credible shows nothing."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._own: dict[int, Interests] = {}
        self._serial = 0
        self._judged: dict[PeerId, _Judged] = {}

    @property
    def serial(self) -> int:
        """The version of our own interests that comparisons use: another number when they change."""
        return self._serial

    def set_interests(self, own: Interests) -> None:
        """Set our topics. Those of the epoch before stay, for filters that are not renewed yet."""
        if self._own.get(own.epoch) == own:
            return
        self._own[own.epoch] = own
        while len(self._own) > _EPOCHS:
            del self._own[min(epoch for epoch in self._own if epoch != own.epoch)]
        self._serial += 1

    def find_filter(self, descriptor: Descriptor) -> ShownFilter | None:
        """Return the filter of a descriptor, if it has one that is credible."""
        judged = self._judge(descriptor)
        return judged.shown if judged.is_credible else None

    def evidence(self, descriptor: Descriptor) -> tuple[int, float]:
        """Return the bits that a filter shows, and the weight of each for a topic; none if it is not
        credible."""
        judged = self._judge(descriptor)
        if judged.evidence is None:
            shown = judged.shown
            judged.evidence = (shown.bits, evidence(shown)) if judged.is_credible else (0, 0.0)
        return judged.evidence

    def cosine(self, descriptor: Descriptor) -> float:
        """Return how similar another node's topics and ours are, from 0 to 1; 0 if unknown."""
        judged = self._judge(descriptor)
        if judged.serial != self._serial:
            own = self._find_comparable(judged)
            judged.cosine = 0.0 if own is None else cosine(own.bits, judged.shown)
            judged.serial = self._serial
        return judged.cosine

    def common_bits(self, descriptor: Descriptor, others: Iterable[Descriptor]) -> list[float]:
        """Return the bits that another node and each of these seem to have in common (`two_sided`); 0 if
        unknown.

        It runs for a hundred nodes in each round, so the formula is written out.
        """
        one = self._judge(descriptor)
        epoch, size, hashes = one.shown.epoch, one.shown.size, one.shown.hashes
        bits, p, noisy = one.shown.bits, one.shown.flip, one.noisy
        found, known = [], self._judged
        for other in others:
            judged = known.get(other.peer)
            if judged is None or judged.descriptor is not other:
                judged = self._judge(other)
            shown = judged.shown
            if shown.epoch != epoch or shown.size != size or shown.hashes != hashes or not judged.is_credible:
                found.append(0.0)
                continue
            q = shown.flip
            both = (bits & shown.bits).bit_count()
            found.append((both - q * noisy - p * judged.noisy + size * p * q) / ((1 - 2 * p) * (1 - 2 * q)))
        return found if one.is_credible else [0.0] * len(found)

    def common_topics(self, descriptor: Descriptor) -> float:
        """Return the estimated number of topics that we and another node have in common; 0 if unknown."""
        judged = self._judge(descriptor)
        own = self._find_comparable(judged)
        return 0.0 if own is None else common_topics(own.bits, own.topics, judged.shown)

    def own_interests(self, descriptor: Descriptor) -> Interests | None:
        """Return those of our interests that a descriptor's filter can be compared with."""
        return self._find_comparable(self._judge(descriptor))

    def _judge(self, descriptor: Descriptor) -> _Judged:
        judged = self._judged.get(descriptor.peer)
        if judged is None or judged.descriptor is not descriptor:
            if judged is None and len(self._judged) >= self._remembered:
                del self._judged[next(iter(self._judged))]
            judged = self._judged[descriptor.peer] = _Judged(descriptor)
        return judged

    def _find_comparable(self, judged: _Judged) -> Interests | None:
        shown = judged.shown
        own = self._own.get(shown.epoch) if judged.is_credible else None
        return own if own is not None and (own.size, own.hashes) == (shown.size, shown.hashes) else None


LOWEST = 0.2
"""The share of the sample, the least similar part, that a finger is drawn from."""
FEWEST = 4.0
"""Bits that a finger must seem to set: a node that seems to have no topics connects no clusters."""


class Fingers:
    """The fingers of one node: peers that are unlike it."""

    def __init__(
        self,
        ours: PeerId,
        config: TrackerlessConfig,
        acquaintances: KnownPeers,
        trust: Trust,
        likeness: InterestSimilarity,
        rng: Random,
    ) -> None:
        self._ours = ours
        self._config = config
        self._acquaintances = acquaintances
        self._trust = trust
        self._similarity = likeness
        self._rng = rng
        self._rounds = 0
        self._changed = 0
        """The round in which a finger was last replaced."""
        self._since: dict[PeerId, int] = {}
        """The fingers, oldest first, with the round in which each was taken."""

    @property
    def peers(self) -> tuple[PeerId, ...]:
        """The fingers."""
        return tuple(self._since)

    def refresh(self, sample: Sequence[PeerId], now: float) -> None:
        """Take a finger if one is lacking; else, when it is time, replace the oldest one."""
        self._rounds += 1
        for peer in [peer for peer in self._since if self._similarity_of(peer, now) is None]:
            self.drop_peer(peer)
        lacking = len(self._since) < self._config.fingers
        if not lacking and self._rounds - self._changed < self._config.finger_rounds:
            return
        candidates = self._find_unlike(sample, now)
        if not candidates or not self._config.fingers:
            return
        if not lacking:
            oldest = next(iter(self._since))
            if self._rounds - self._since[oldest] < self._config.finger_rounds:
                return
            self.drop_peer(oldest)
            self._changed = self._rounds
        chosen = self._rng.choice(candidates)
        self._since[chosen] = self._rounds
        self._acquaintances.pin_peer(chosen)

    def drop_peer(self, peer: PeerId) -> None:
        """Drop a finger that is gone, or broke the protocol."""
        if self._since.pop(peer, None) is not None:
            self._acquaintances.unpin_peer(peer)

    def _find_unlike(self, sample: Sequence[PeerId], now: float) -> list[PeerId]:
        """Return the least similar fifth of the sample, without peers that are fingers already."""
        likeness = {peer: value for peer in sample if (value := self._similarity_of(peer, now)) is not None}
        ranked = sorted(likeness, key=likeness.__getitem__)
        return [peer for peer in ranked[: ceil(len(ranked) * LOWEST)] if peer not in self._since]

    def _similarity_of(self, peer: PeerId, now: float) -> float | None:
        """Return how similar to us a peer is; None if it may not be a finger."""
        descriptor = self._acquaintances.descriptor_of(peer)
        if peer == self._ours or descriptor is None or descriptor.expires < now:
            return None
        shown = self._similarity.find_filter(descriptor)
        if shown is None or shown.ones < FEWEST or self._trust.is_banned(peer, now):
            return None
        return self._similarity.cosine(descriptor)
