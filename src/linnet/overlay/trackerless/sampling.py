"""Peer sampling: a view of a few nodes out of all, which liars cannot take over.

Views are pulled, never pushed; a node that pulls introduces itself, and only itself, or nobody
would ever hear of it. Of an answer every id is counted and one is offered to the view, and of the
introductions of a period too: so those that liars name too often are let in the less (UPSYCLE
2020; Anceaume, Busnel, Sericola 2013). Answers do not depend on trust, lest they show whom the
node trusts.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.overlay.kademlia.prefixes import prefixes
from linnet.overlay.trackerless.acquaintances import Acquaintances
from linnet.overlay.trackerless.config import TrackerlessConfig
from linnet.overlay.trackerless.descriptor import DescriptorCheck, check_descriptor
from linnet.overlay.trackerless.messages import Descriptor, Pull, Pulled
from linnet.overlay.trackerless.sampler import StreamSampler
from linnet.overlay.trackerless.sketch import CountMin
from linnet.overlay.trackerless.trust import Trust
from linnet.trace.records import Kind, Record

FAILURES = 2
"""Questions in a row that a peer may leave unanswered until it is dropped."""
MOST_PULLS = 4
"""Pulls of one peer that are answered in a period: periods differ by a fifth, links fail."""
LONGEST_REST = 8
"""A peer that fails rests for two periods, then four, and so on, this many doublings at most."""
RESTING = 1024
INTRODUCED = 8192
"""Peers of whom it is remembered that they introduced themselves."""
INTRODUCTION_AGES = 10
"""A peer may introduce itself once in so many halvings of the counts: about as often as one would
that asks anyone at random."""

_RETRY = 0.5
"""Share of pulls that go to a member that failed once, while there is one."""
_OLDEST = 0.25
"""Share of pulls that go to the member not spoken to for longest, so that none stays that is gone."""
_FAULT_OF_TELLER = (Reason.BAD_SIGNATURE, Reason.MALFORMED)
_FAULT_OF_NODE = (Reason.IMPLAUSIBLE_FILTER,)


class Sampling:
    """The view of one node, and its side of pulls. It asks nobody by itself."""

    def __init__(
        self,
        ours: PeerId,
        config: TrackerlessConfig,
        acquaintances: Acquaintances,
        trust: Trust,
        rng: Random,
        key: bytes,
        check: DescriptorCheck = check_descriptor,
        addresses: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        self._ours = ours
        self._config = config
        self._acquaintances = acquaintances
        self._trust = trust
        self._rng = rng
        self._check = check
        self._addresses = addresses
        """Where this node itself can be dialled: those of its own network are not bounded."""
        sketch = CountMin(config.sketch_rows, config.sketch_columns, key)
        self._sampler = StreamSampler(config.view, sketch, rng, config.quantile)
        self._rounds = 0
        self._introduced: dict[PeerId, int] = {}
        """In which round a peer last introduced itself, for those that may not again yet."""
        self._waiting: list[PeerId] = []
        """Who introduced itself in this period."""
        self._asked: dict[PeerId, int] = {}
        self._resting: dict[PeerId, float] = {}
        self._suspects: dict[PeerId, None] = {}
        """Members that failed once."""
        self._favoured: PeerId | None = None
        """Whom we ask because the user trusts it, not because it is in the view."""

    @property
    def view(self) -> tuple[PeerId, ...]:
        """A sample of all nodes."""
        return self._sampler.members

    def target(self, now: float) -> PeerId | None:
        """Whom to pull from in this round; None if nobody is known."""
        if self._rng.random() < self._config.trusted_share:
            trusted = self._trusted(now)
            if trusted:
                self._favoured = self._rng.choices(list(trusted), list(trusted.values()))[0]
                return self._favoured
        self._favoured = None
        luck = self._rng.random()
        if self._suspects and luck < _RETRY:
            return next(iter(self._suspects))
        return self.probe(now) if luck < _OLDEST else self._sampler.draw_rare()

    def probe(self, now: float) -> PeerId | None:
        """The member of the view not spoken to for longest: it may be gone."""
        return max(self._sampler, key=self._age, default=None)

    def pulled(self, peer: PeerId, descriptors: tuple[Descriptor, ...], now: float) -> list[Record]:
        """Take in the answer to a pull: count all that it names, offer one."""
        self.answered(peer, now)
        wrong: dict[Reason, int] = {}
        if len(descriptors) > self._config.answer:
            wrong[Reason.TOO_MANY] = len(descriptors) - self._config.answer
        named = self._usable(peer, descriptors[: self._config.answer], now, wrong)
        if self._trust.is_banned(peer, now):
            self.drop(peer)
            named = []
        for node in named:
            self._sampler.count(node)
        records = [Record(Kind.REJECTED, peer=peer, reason=why, events=many) for why, many in wrong.items()]
        return [*records, *self._offer_some(named, now)] if named else records

    def asked(self, peer: PeerId, pull: Pull, own: Descriptor, now: float) -> tuple[Pulled, list[Record]]:
        """Answer a pull from the view alone, and let the one who asks introduce itself."""
        if pull.own.peer != peer:
            raise RemoteError(Reason.NOT_ALLOWED, "a node may introduce none but itself")
        if self._trust.is_banned(peer, now):
            raise RemoteError(Reason.BANNED, "it broke the protocol within the last day")
        pulls = self._asked.get(peer, 0) + 1
        if pulls > MOST_PULLS:
            raise RemoteError(Reason.FLOODING, f"more than {MOST_PULLS} pulls in a period")
        self._asked[peer] = pulls
        if not self._is_known(pull.own, now):
            self._check_own(peer, pull.own, now)
            self._acquaintances.learn(pull.own, now)
        self.answered(peer, now)
        answer = Pulled(pull.number, (own, *self._told(peer, now)))
        return answer, self._introduce(peer, now)

    def answered(self, peer: PeerId, now: float) -> None:
        """A peer showed that it is up."""
        self._acquaintances.contacted(peer, now)
        self._trust.spoke(peer, now)
        self._resting.pop(peer, None)
        self._suspects.pop(peer, None)

    def failed(self, peer: PeerId, now: float) -> None:
        """A peer did not answer: the second time in a row it leaves the view, and rests."""
        failures = self._acquaintances.failed(peer)
        if failures < FAILURES:
            if peer in self._sampler:
                self._suspects[peer] = None
            return
        self.drop(peer)
        if len(self._resting) >= RESTING:
            del self._resting[next(iter(self._resting))]
        rest = self._config.period * 2.0 ** min(failures - 1, LONGEST_REST)
        self._resting.pop(peer, None)
        self._resting[peer] = now + rest

    def drop(self, peer: PeerId) -> None:
        """Take a peer out of the view: it is gone, or broke the protocol."""
        self._suspects.pop(peer, None)
        if self._sampler.remove(peer):
            self._acquaintances.unpin(peer)

    def meet(self, descriptor: Descriptor, now: float) -> list[Record]:
        """Learn of a node otherwise than by gossip: a first address, the local network."""
        self._check(descriptor, now)
        if descriptor.peer == self._ours or self._trust.is_banned(descriptor.peer, now):
            return []
        self._acquaintances.learn(descriptor, now)
        self._sampler.count(descriptor.peer)
        return self._offer(descriptor.peer, now)

    def round(self, now: float) -> list[Record]:
        """A period went by: quotas are whole again, counts age, what ended is dropped."""
        self._rounds += 1
        self._acquaintances.round()
        self._sampler.round()
        records: list[Record] = []
        if self._waiting:
            records += self._offer(self._waiting[int(self._rng.random() * len(self._waiting))], now)
            self._waiting = []
        self._asked.clear()
        self._forgive()
        if self._rounds % self._config.halve_rounds:
            return records
        self._sampler.halve()
        return [*records, *self._expire(now)]

    def _forgive(self) -> None:
        """Let peers introduce themselves again whose last time is long ago."""
        before = self._rounds - INTRODUCTION_AGES * self._config.halve_rounds
        past = []
        for peer, last in self._introduced.items():
            if last > before:
                break
            past.append(peer)
        for peer in past:
            del self._introduced[peer]

    def _expire(self, now: float) -> list[Record]:
        """Drop whose descriptor ended: it was not heard of for long."""
        records = []
        for peer in self._sampler.members:
            descriptor = self._acquaintances.descriptor(peer)
            if descriptor is None or descriptor.expires < now:
                self.drop(peer)
                records.append(Record(Kind.EXPIRED, peer=peer, reason=Reason.STALE))
        self._acquaintances.expire(now)
        return records

    def _usable(
        self, teller: PeerId, descriptors: tuple[Descriptor, ...], now: float, wrong: dict[Reason, int]
    ) -> list[PeerId]:
        """The nodes that an answer names, once each, as far as their descriptors are good.

        A teller that is asked for being trusted is left out itself: it is asked so much oftener than
        others that counting it would keep it from the view, and a view without it would show the trust.
        """
        named: dict[PeerId, None] = {}
        is_vouching = self._trust.is_vouching(teller, now)
        for descriptor in descriptors:
            node = descriptor.peer
            if node == self._ours or node in named or self._trust.is_banned(node, now):
                continue
            if not self._is_known(descriptor, now):
                try:
                    self._check(descriptor, now)
                except RemoteError as error:
                    wrong[error.reason] = wrong.get(error.reason, 0) + 1
                    self._blame(teller, node, error.reason, now)
                    continue
                self._acquaintances.learn(descriptor, now)
            if node == teller == self._favoured:
                continue
            if node in self._acquaintances:
                named[node] = None
                if is_vouching:
                    self._trust.vouched(node, teller, now)
        return list(named)

    def _check_own(self, peer: PeerId, descriptor: Descriptor, now: float) -> None:
        try:
            self._check(descriptor, now)
        except RemoteError as error:
            if error.reason in _FAULT_OF_TELLER or error.reason in _FAULT_OF_NODE:
                self._trust.offence(peer, now)
                self.drop(peer)
            raise

    def _blame(self, teller: PeerId, node: PeerId, reason: Reason, now: float) -> None:
        """Whose fault a bad descriptor is: everyone checks what they pass on, and signs their own."""
        if reason in _FAULT_OF_TELLER:
            self._trust.offence(teller, now)
        elif reason in _FAULT_OF_NODE:
            self._trust.offence(node, now)
            self.drop(node)

    def _is_known(self, descriptor: Descriptor, now: float) -> bool:
        """Whether this very descriptor was checked before, and has not ended."""
        known = self._acquaintances.descriptor(descriptor.peer)
        return known is not None and descriptor.expires >= now and known == descriptor

    def _offer_some(self, named: list[PeerId], now: float) -> list[Record]:
        """Offer one node of an answer; all of them while the view is sparse, as it is at the start."""
        if not self._sampler.is_sparse:
            return self._offer(named[int(self._rng.random() * len(named))], now)
        records: list[Record] = []
        for node in self._rng.sample(named, len(named)):
            if not self._sampler.is_sparse:
                break
            records += self._offer(node, now)
        return records

    def _offer(self, peer: PeerId, now: float) -> list[Record]:
        if peer in self._sampler or peer not in self._acquaintances or self._rests(peer, now):
            return []
        if self._is_crowded(peer):
            return [Record(Kind.DROPPED, peer=peer, reason=Reason.TOO_MANY, note="address prefix")]
        evicted = self._sampler.offer(peer)
        if evicted is not None:
            self._acquaintances.unpin(evicted)
            self._suspects.pop(evicted, None)
        if peer in self._sampler:
            self._acquaintances.pin(peer)
        return []

    def _is_crowded(self, peer: PeerId) -> bool:
        """Whether the view holds as many of a peer's address prefix as it may.

        Keys cost nothing, addresses do. Those who share our own prefix are as many as they are: a network
        of one house or one machine is no attack.
        """
        near = prefixes(self._addresses())
        theirs = [each for each in self._prefixes(peer) if each not in near]
        if not theirs:
            return False
        held = [self._prefixes(member) for member in self._sampler]
        return any(sum(one in each for each in held) >= self._config.same_prefix for one in theirs)

    def _prefixes(self, peer: PeerId) -> tuple[str, ...]:
        descriptor = self._acquaintances.descriptor(peer)
        return () if descriptor is None else prefixes(descriptor.hints)

    def _introduce(self, peer: PeerId, now: float) -> list[Record]:
        """Whoever asks is counted, and one of a period's is offered at its end; nobody is often.

        Else a few peers that ask again and again would be all that a victim hears of; and whoever
        asks often because it trusts us would be told of often, which would show the trust.
        """
        if peer in self._introduced:
            return []
        if len(self._waiting) >= self._config.introductions:
            return [Record(Kind.DROPPED, peer=peer, reason=Reason.QUOTA, note="introduction")]
        self._waiting.append(peer)
        if len(self._introduced) >= INTRODUCED:
            del self._introduced[next(iter(self._introduced))]
        self._introduced[peer] = self._rounds
        self._sampler.count(peer)
        return self._offer(peer, now) if self._sampler.is_sparse else []

    def _told(self, peer: PeerId, now: float) -> list[Descriptor]:
        told = []
        for member in self._sampler.sample(self._config.answer):
            descriptor = self._acquaintances.descriptor(member)
            if member != peer and descriptor is not None and descriptor.expires >= now:
                told.append(descriptor)
        return told[: self._config.answer - 1]

    def _trusted(self, now: float) -> dict[PeerId, float]:
        """Peers that the user trusts and that can be asked."""
        return {
            peer: value
            for peer, value in self._trust.known().items()
            if peer in self._acquaintances
            and not self._rests(peer, now)
            and not self._trust.is_banned(peer, now)
        }

    def _rests(self, peer: PeerId, now: float) -> bool:
        until = self._resting.get(peer)
        if until is not None and until <= now:
            del self._resting[peer]
            return False
        return until is not None

    def _age(self, peer: PeerId) -> int:
        known = self._acquaintances.get(peer)
        return 0 if known is None else known.age
