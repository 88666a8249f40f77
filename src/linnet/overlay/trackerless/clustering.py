"""Peers with like interests, found by asking those that are alike already; and a few that are quite unlike.

Like Vicinity (Voulgaris, van Steen 2005), with filters in place of profiles and trust beside likeness
(UPSYCLE 2020). Candidates come from the answers of others and from the own random sample, without which
nodes get stuck in the first cluster they find. The unlike ones, fingers, are for searches to leave a cluster
by. Likeness to us is judged with our exact topics, which nobody else can do for us; others are asked only
for a first choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.overlay.trackerless.acquaintances import Acquaintances
from linnet.overlay.trackerless.config import TrackerlessConfig
from linnet.overlay.trackerless.descriptor import DescriptorCheck
from linnet.overlay.trackerless.fingers import Fingers
from linnet.overlay.trackerless.hearsay import Hearsay
from linnet.overlay.trackerless.likeness import Likeness
from linnet.overlay.trackerless.messages import POINTS, Descriptor
from linnet.overlay.trackerless.plausible import believing, is_contradicted
from linnet.overlay.trackerless.trust import Trust
from linnet.trace.records import Kind, Record

ENTRIES = 3
"""Nodes of one answer that may enter the view: else one liar could fill it with friends."""
RECALLED = 20
"""Acquaintances, whoever named them, that are weighed against the view in each round: as many as an answer to
a pull names. A liar that is taken for alike names liars alone, and so would fill the view by and by; weighed
against everyone who is known they have no more of it than their share."""
AT_RANDOM = 2
"""Nodes of our sample that an answer holds whether they are alike or not."""
CONTRADICTIONS = 2
"""Intersections that find far less than a filter promised, until the filter counts as a lie."""
_COMPLETE = 0.75 * POINTS
"""Topics up to which an intersection is surely of all of them, and so may contradict a filter."""
_REMEMBERED = 1024
_WORTH_ROUNDS = 5
"""Rounds for which a score stands: trust in a peer changes slowly."""
_ASKED = 64

_believing = believing()


class Clustering:
    """The likest peers and the fingers of one node. It asks nobody by itself."""

    def __init__(
        self,
        ours: PeerId,
        config: TrackerlessConfig,
        acquaintances: Acquaintances,
        trust: Trust,
        rng: Random,
        check: DescriptorCheck = _believing,
    ) -> None:
        self._ours = ours
        self._config = config
        self._acquaintances = acquaintances
        self._trust = trust
        self._rng = rng
        self.likeness = Likeness()
        """For comparisons with our topics; tell its `become` of them."""
        self._fingers = Fingers(ours, config, acquaintances, trust, self.likeness, rng)
        self._hearsay = Hearsay(ours, acquaintances, trust, check, self.drop)
        self._view: dict[PeerId, float] = {}
        """The likest, with their scores, best first."""
        self._asked: dict[PeerId, None] = {}
        """Taken out of the view until they answer."""
        self._avoided: dict[PeerId, int] = {}
        """Versions of descriptors whose nodes did not answer, or promised too much."""
        self._contradicted: dict[PeerId, int] = {}

    @property
    def view(self) -> tuple[PeerId, ...]:
        """The likest peers, best first."""
        return tuple(self._view)

    @property
    def fingers(self) -> tuple[PeerId, ...]:
        """Peers that are quite unlike us."""
        return self._fingers.peers

    def score(self, descriptor: Descriptor, now: float) -> float:
        """What a peer is worth to us: likeness^(2-e) · trust^e, the larger the better."""
        weight = self._config.trust_weight
        likeness = self.likeness.cosine(descriptor) ** (2 - weight)
        return float(likeness * self._trust.of(descriptor.peer, now) ** weight)

    def target(self, sample: Sequence[PeerId]) -> PeerId | None:
        """Whom to ask: of the likest the one not heard of for longest, else one of the sample."""
        if self._view:
            peer = max(self._view, key=self._age)
            del self._view[peer]
            self._asked[peer] = None
            if len(self._asked) > _ASKED:
                self._let_go(next(iter(self._asked)))
            return peer
        others = [peer for peer in sample if peer != self._ours]
        return self._rng.choice(others) if others else None

    def answer(
        self,
        requester: Descriptor,
        sample: Sequence[PeerId],
        members: Iterable[PeerId],
        own: Descriptor,
        now: float,
    ) -> tuple[Descriptor, ...]:
        """Nodes that seem to be like the one who asks, with two at random; trust plays no part in it."""
        told = {peer: one for peer in sample if (one := self._fresh(peer, requester.peer, now)) is not None}
        known = {own.peer: own, **told}
        for peer in (*self._view, *members):
            if peer not in known and (descriptor := self._fresh(peer, requester.peer, now)) is not None:
                known[peer] = descriptor
        start = int(self._rng.random() * len(known))
        candidates = list(known.values())
        candidates = candidates[start:] + candidates[:start]  # Among equals anyone may come first.
        common = self.likeness.between(requester, candidates)
        likest = sorted(range(len(candidates)), key=common.__getitem__, reverse=True)
        chosen = [candidates[at] for at in likest[: self._config.gossip - AT_RANDOM]]
        best = {candidate.peer: candidate for candidate in chosen}
        rest = [descriptor for peer, descriptor in told.items() if peer not in best]
        return (*best.values(), *self._rng.sample(rest, min(AT_RANDOM, len(rest))))

    def learned(
        self, peer: PeerId, descriptors: Sequence[Descriptor], sample: Sequence[PeerId], now: float
    ) -> list[Record]:
        """Take in an answer: keep the best of those in view, of the sample, and of three whom it names."""
        named, records = self._hearsay.named(peer, descriptors, self._config.gossip, now)
        came_back = [peer] if self._asked.pop(peer, self) is None else []
        recalled = [node for node in self._acquaintances.next(RECALLED) if node not in named]
        pool = {
            node: None for node in (*self._view, *came_back, *sample, *recalled) if node not in self._asked
        }
        strangers = [node for node in named if node not in pool and node not in self._asked]
        scores = self._scores(strangers, now)
        entering = sorted(scores, key=scores.__getitem__, reverse=True)[:ENTRIES]
        self._keep(self._scores((*pool, *entering), now), came_back)
        return records

    def refresh_fingers(self, sample: Sequence[PeerId], now: float) -> None:
        """A round went by: one finger may be taken or replaced, from the sample alone."""
        self._fingers.round(sample, now)

    def failed(self, peer: PeerId) -> None:
        """A peer did not answer: it is in no view until it says something new of itself."""
        self._avoid(peer)
        self.drop(peer)

    def drop(self, peer: PeerId) -> None:
        """Take a peer out of the view and the fingers."""
        self._let_go(peer)
        self._fingers.drop(peer)

    def intersected(self, peer: PeerId, common: int, now: float) -> list[Record]:
        """An intersection found so many common topics: is that what the peer's filter promised?"""
        descriptor = self._acquaintances.descriptor(peer)
        own = None if descriptor is None else self.likeness.own(descriptor)
        shown = None if descriptor is None else self.likeness.shown(descriptor)
        if own is None or shown is None or max(own.topics, shown.ones) > _COMPLETE:
            return []
        if not is_contradicted(own, shown, common):
            self._contradicted.pop(peer, None)
            return []
        times = self._contradicted.pop(peer, 0) + 1
        if times >= CONTRADICTIONS:
            self._trust.offence(peer, now)
        else:
            _remember(self._contradicted, peer, times)
        self.failed(peer)
        note = "an intersection found less than the filter promised"
        return [Record(Kind.REJECTED, peer=peer, reason=Reason.IMPLAUSIBLE_FILTER, note=note)]

    def _scores(self, peers: Iterable[PeerId], now: float) -> dict[PeerId, float]:
        """The scores of those that are worth anything."""
        scores = {}
        avoided, known, serial = self._avoided, self._acquaintances.get, self.likeness.serial
        for peer in peers:
            one = known(peer)
            if one is None or peer == self._ours:
                continue
            descriptor, of = one.descriptor, one.worth_of
            if descriptor.expires < now or avoided.get(peer, -1) >= descriptor.version:
                continue
            if of is None or of[0] is not descriptor or of[1] != serial or of[2] <= now:
                one.worth = self.score(descriptor, now)
                one.worth_of = (descriptor, serial, now + _WORTH_ROUNDS * self._config.period)
            if one.worth > 0.0 and not self._trust.is_banned(peer, now):
                scores[peer] = one.worth
        return scores

    def _keep(self, scores: dict[PeerId, float], came_back: Iterable[PeerId]) -> None:
        """Let the best be the view."""
        best = sorted(scores, key=scores.__getitem__, reverse=True)[: self._config.close]
        pinned = (*self._view, *came_back)
        view = {peer: scores[peer] for peer in best}
        for peer in view:
            if peer not in pinned:
                self._acquaintances.pin(peer)
        for peer in pinned:
            if peer not in view:
                self._acquaintances.unpin(peer)
        self._view = view

    def _let_go(self, peer: PeerId) -> None:
        if self._view.pop(peer, None) is not None or self._asked.pop(peer, self) is None:
            self._acquaintances.unpin(peer)

    def _fresh(self, peer: PeerId, other: PeerId, now: float) -> Descriptor | None:
        """What `peer`, who is not `other`, says of itself, if that may be used and passed on."""
        descriptor = self._acquaintances.descriptor(peer)
        if peer == other or descriptor is None or descriptor.expires < now:
            return None
        return None if self._trust.is_banned(peer, now) else descriptor

    def _avoid(self, peer: PeerId) -> None:
        descriptor = self._acquaintances.descriptor(peer)
        if descriptor is not None:
            _remember(self._avoided, peer, descriptor.version)

    def _age(self, peer: PeerId) -> int:
        known = self._acquaintances.get(peer)
        return 0 if known is None else known.age


def _remember(table: dict[PeerId, int], peer: PeerId, value: int) -> None:
    """Write to a table that forgets what was written first."""
    table.pop(peer, None)
    if len(table) >= _REMEMBERED:
        del table[next(iter(table))]
    table[peer] = value
