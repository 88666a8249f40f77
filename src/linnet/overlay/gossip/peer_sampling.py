"""Peer sampling: a view of a few nodes out of all, which liars cannot take over.

Views are pulled, never pushed; a node that pulls introduces itself, and only itself, or no other node would
ever learn of it. Of an answer every id is counted and one is offered to the view, and likewise of the
introductions of a period: so ids that liars name too often are admitted less often (UPSYCLE 2020; Anceaume,
Busnel, Sericola 2013). Answers do not depend on trust, lest they show which peers the node trusts.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from math import floor
from random import Random

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.descriptor import DescriptorCheck, check_descriptor
from linnet.overlay.gossip.known_peers import KnownPeers
from linnet.overlay.gossip.messages import Descriptor, Pull, Pulled
from linnet.overlay.gossip.trust import Trust
from linnet.overlay.kademlia.routing_table import prefixes_of
from linnet.trace.records import Kind, Record

FAILURES = 2
"""Questions in a row that a peer may leave unanswered until it is dropped."""
MOST_PULLS = 4
"""Pulls of one peer that are answered in a period: periods differ by a fifth, links fail."""
LONGEST_REST = 8
"""The most doublings of a failing peer's rest: it rests for two periods, then four, and so on."""
RESTING = 1024
INTRODUCED = 8192
"""Peers whose introduction is remembered."""
INTRODUCTION_AGES = 10
"""A peer may introduce itself once in so many halvings of the counts: about as often as a peer that asks
random nodes."""

_RETRY = 0.5
"""Share of pulls that go to a member that failed once, while there is one."""
_OLDEST = 0.25
"""Share of pulls that go to the member not spoken to for longest, so that no dead one stays."""
_FAULT_OF_TELLER = (Reason.BAD_SIGNATURE, Reason.MALFORMED)
"""Faults that every honest node notices before passing a descriptor on."""
_FAULT_OF_NODE = (Reason.IMPLAUSIBLE_FILTER,)
"""Faults in a statement that the node itself signed."""


class PeerSampling:
    """The view of one node, and its side of pulls. It sends no messages itself."""

    def __init__(
        self,
        ours: PeerId,
        config: TrackerlessConfig,
        acquaintances: KnownPeers,
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
        self._heard = HeardPeers(ours, acquaintances, trust, check, self.drop_peer)
        self._addresses = addresses
        """Returns the addresses of this node itself: peers of its own network are not limited."""
        sketch = CountMin(config.sketch_rows, config.sketch_columns, key)
        self._sampler = StreamSampler(config.view, sketch, rng, config.quantile)
        self._rounds = 0
        self._introduced: dict[PeerId, int] = {}
        """The round in which a peer last introduced itself, for peers that may not do so again yet."""
        self._waiting: list[PeerId] = []
        """Peers that introduced themselves in this period."""
        self._asked: dict[PeerId, int] = {}
        self._resting: dict[PeerId, float] = {}
        self._suspects: dict[PeerId, None] = {}
        """Members that failed once."""
        self._favoured: PeerId | None = None
        """The peer that we ask because the user trusts it, not because it is in the view."""

    @property
    def view(self) -> tuple[PeerId, ...]:
        """A random sample of all nodes."""
        return self._sampler.members

    def choose_target(self, now: float) -> PeerId | None:
        """Choose the peer to pull from in this round; None if none is known."""
        if self._rng.random() < self._config.trusted_share:
            trusted = self._find_trusted(now)
            if trusted:
                self._favoured = self._rng.choices(list(trusted), list(trusted.values()))[0]
                return self._favoured
        self._favoured = None
        luck = self._rng.random()
        if self._suspects and luck < _RETRY:
            return next(iter(self._suspects))
        return self.find_oldest() if luck < _OLDEST else self._sampler.draw_rare()

    def find_oldest(self) -> PeerId | None:
        """Return the member of the view not spoken to for longest: it may be gone."""
        return max(self._sampler, key=self._acquaintances.age_of, default=None)

    def handle_pulled(self, peer: PeerId, descriptors: tuple[Descriptor, ...], now: float) -> list[Record]:
        """Take in the answer to a pull: count all nodes that it names, offer one to the view."""
        back = self.end_rest(peer, now)
        self.note_contact(peer, now)
        named, records = self._heard.check_named(peer, descriptors, self._config.answer, now, self._favoured)
        records = [*back, *records]
        if self._trust.is_banned(peer, now):
            self.drop_peer(peer)
        for node in named:
            self._sampler.count(node)
        return [*records, *self._offer_some(named, now)] if named else records

    def answer_pull(
        self, peer: PeerId, pull: Pull, own: Descriptor, now: float
    ) -> tuple[Pulled, list[Record]]:
        """Answer a pull from the view alone, and let the peer that asks introduce itself."""
        if pull.own.peer != peer:
            raise RemoteError(Reason.NOT_ALLOWED, "a node may introduce none but itself")
        if self._trust.is_banned(peer, now):
            raise RemoteError(Reason.BANNED, "it broke the protocol within the last day")
        pulls = self._asked.get(peer, 0) + 1
        if pulls > MOST_PULLS:
            raise RemoteError(Reason.FLOODING, f"more than {MOST_PULLS} pulls in a period")
        self._asked[peer] = pulls
        if not self._heard.is_known(pull.own, now):
            self._check_own(peer, pull.own, now)
            self._acquaintances.learn_descriptor(pull.own, now)
        back = self.end_rest(peer, now)
        self.note_contact(peer, now)
        answer = Pulled(pull.number, (own, *self._choose_descriptors(peer, now)))
        return answer, [*back, *self._introduce(peer, now)]

    def note_contact(self, peer: PeerId, now: float) -> None:
        """Note that a peer is up."""
        self._acquaintances.note_contact(peer, now)
        self._trust.note_contact(peer, now)
        self._resting.pop(peer, None)
        self._suspects.pop(peer, None)

    def end_rest(self, peer: PeerId, now: float) -> list[Record]:
        """End the rest of a peer that is up: offer it to the view at once, as any peer is to an empty
        view."""
        rested = self._resting.pop(peer, None) is not None
        if (not rested and len(self._sampler)) or self._trust.is_banned(peer, now):
            return []
        return self._offer_peer(peer, now)

    def note_failure(self, peer: PeerId, now: float) -> None:
        """Note that a peer did not answer: at the second time in a row it leaves the view, and rests."""
        failures = self._acquaintances.note_failure(peer)
        if failures < FAILURES:
            if peer in self._sampler:
                self._suspects[peer] = None
            return
        self.drop_peer(peer)
        if len(self._resting) >= RESTING:
            del self._resting[next(iter(self._resting))]
        rest = self._config.period * 2.0 ** min(failures - 1, LONGEST_REST)
        self._resting.pop(peer, None)
        self._resting[peer] = now + rest

    def drop_peer(self, peer: PeerId) -> None:
        """Take a peer that is gone, or broke the protocol, out of the view."""
        self._suspects.pop(peer, None)
        if self._sampler.remove(peer):
            self._acquaintances.unpin_peer(peer)

    def forget_peer(self, peer: PeerId) -> None:
        """Forget all about a peer, which may be learned of anew later."""
        self.drop_peer(peer)
        self._resting.pop(peer, None)
        self._introduced.pop(peer, None)
        self._waiting = [each for each in self._waiting if each != peer]
        if self._favoured == peer:
            self._favoured = None

    def add_descriptor(self, descriptor: Descriptor, now: float) -> list[Record]:
        """Learn of a node otherwise than by gossip: from a bootstrap address or a local network."""
        self._check(descriptor, now)
        if descriptor.peer == self._ours or self._trust.is_banned(descriptor.peer, now):
            return []
        self._acquaintances.learn_descriptor(descriptor, now)
        self._sampler.count(descriptor.peer)
        return self._offer_peer(descriptor.peer, now)

    def begin_round(self, now: float) -> list[Record]:
        """Begin a period: reset quotas, age counts, drop expired descriptors."""
        self._rounds += 1
        self._acquaintances.begin_round()
        self._sampler.round()
        records: list[Record] = []
        if self._waiting:
            records += self._offer_peer(self._waiting[int(self._rng.random() * len(self._waiting))], now)
            self._waiting = []
        self._asked.clear()
        self._forget_introductions()
        if self._rounds % self._config.halve_rounds:
            return records
        self._sampler.halve()
        return [*records, *self._drop_expired(now)]

    def _forget_introductions(self) -> None:
        """Let peers introduce themselves again that did so long ago."""
        before = self._rounds - INTRODUCTION_AGES * self._config.halve_rounds
        past = []
        for peer, last in self._introduced.items():
            if last > before:
                break
            past.append(peer)
        for peer in past:
            del self._introduced[peer]

    def _drop_expired(self, now: float) -> list[Record]:
        """Drop members whose descriptor expired: nothing was heard of them for long."""
        records = []
        for peer in self._sampler.members:
            descriptor = self._acquaintances.descriptor_of(peer)
            if descriptor is None or descriptor.expires < now:
                self.drop_peer(peer)
                records.append(Record(Kind.EXPIRED, peer=peer, reason=Reason.STALE))
        self._acquaintances.drop_expired(now)
        return records

    def _check_own(self, peer: PeerId, descriptor: Descriptor, now: float) -> None:
        try:
            self._check(descriptor, now)
        except RemoteError as error:
            if error.reason in _FAULT_OF_TELLER or error.reason in _FAULT_OF_NODE:
                self._trust.note_offence(peer, now)
                self.drop_peer(peer)
            raise

    def _offer_some(self, named: list[PeerId], now: float) -> list[Record]:
        """Offer one node of an answer to the view; all of them while it is sparse, as at the start."""
        if not self._sampler.is_sparse:
            return self._offer_peer(named[int(self._rng.random() * len(named))], now)
        records: list[Record] = []
        for node in self._rng.sample(named, len(named)):
            if not self._sampler.is_sparse:
                break
            records += self._offer_peer(node, now)
        return records

    def _offer_peer(self, peer: PeerId, now: float) -> list[Record]:
        if peer in self._sampler or peer not in self._acquaintances or self._is_resting(peer, now):
            return []
        if self._is_crowded(peer):
            return [Record(Kind.DROPPED, peer=peer, reason=Reason.TOO_MANY, note="address prefix")]
        evicted = self._sampler.offer(peer)
        if evicted is not None:
            self._acquaintances.unpin_peer(evicted)
            self._suspects.pop(evicted, None)
        if peer in self._sampler:
            self._acquaintances.pin_peer(peer)
        return []

    def _is_crowded(self, peer: PeerId) -> bool:
        """Return whether the view holds as many peers of a peer's address prefix as it may.

        Keys cost nothing, addresses do. Peers of our own prefix are not limited: a network of one house or
        one machine is no attack.
        """
        near = prefixes_of(self._addresses())
        theirs = [each for each in self._prefixes_of(peer) if each not in near]
        if not theirs:
            return False
        held = [self._prefixes_of(member) for member in self._sampler]
        return any(sum(one in each for each in held) >= self._config.same_prefix for one in theirs)

    def _prefixes_of(self, peer: PeerId) -> tuple[str, ...]:
        descriptor = self._acquaintances.descriptor_of(peer)
        return () if descriptor is None else prefixes_of(descriptor.hints)

    def _introduce(self, peer: PeerId, now: float) -> list[Record]:
        """Count a peer that asks, and offer one of those of a period at its end; no peer is offered often.

        Otherwise a few peers that ask again and again would be all that a victim hears of; and a peer that
        asks often because it trusts us would be named often, which would show the trust.
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
        return self._offer_peer(peer, now) if self._sampler.is_sparse else []

    def _choose_descriptors(self, peer: PeerId, now: float) -> list[Descriptor]:
        told = []
        for member in self._sampler.sample(self._config.answer):
            descriptor = self._acquaintances.descriptor_of(member)
            if member != peer and descriptor is not None and descriptor.expires >= now:
                told.append(descriptor)
        return told[: self._config.answer - 1]

    def _find_trusted(self, now: float) -> dict[PeerId, float]:
        """Return peers that the user trusts and that can be asked."""
        return {
            peer: value
            for peer, value in self._trust.known.items()
            if peer in self._acquaintances
            and not self._is_resting(peer, now)
            and not self._trust.is_banned(peer, now)
        }

    def _is_resting(self, peer: PeerId, now: float) -> bool:
        until = self._resting.get(peer)
        if until is not None and until <= now:
            del self._resting[peer]
            return False
        return until is not None


REFRESH_COUNTS = 200
REFRESH_ROUNDS = 5
"""Ids or rounds after which the quantile is computed anew."""


class StreamSampler:
    """The memory of a node: ids out of those offered to it, each with the same chance."""

    __slots__ = ("_members", "_places", "_quantile", "_rng", "_rounds", "_size", "_sketch", "_stale", "_tau")

    def __init__(self, size: int, sketch: CountMin, rng: Random, tau: float) -> None:
        self._size = size
        self._sketch = sketch
        self._rng = rng
        self._tau = tau
        self._members: list[PeerId] = []
        self._places: dict[PeerId, int] = {}
        """The index of each member in the list."""
        self._quantile = 0.0
        self._stale = REFRESH_COUNTS
        self._rounds = 0

    @property
    def members(self) -> tuple[PeerId, ...]:
        """The ids that the memory holds."""
        return tuple(self._members)

    def __contains__(self, peer: PeerId) -> bool:
        return peer in self._places

    def __iter__(self) -> Iterator[PeerId]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    @property
    def is_sparse(self) -> bool:
        """Whether less than half of its places are taken: then it admits every id that is offered."""
        return 2 * len(self._members) < self._size

    def count(self, peer: PeerId) -> None:
        """Count an appearance of an id in the stream."""
        self._sketch.count_id(peer)
        self._stale += 1

    def offer(self, peer: PeerId) -> PeerId | None:
        """Admit an id, the less likely the more often it appeared; return the id that it replaces."""
        if peer in self._places:
            return None
        if not self.is_sparse and self._rng.random() >= self._chance(peer):
            return None
        if len(self._members) < self._size:
            self._places[peer] = len(self._members)
            self._members.append(peer)
            return None
        place = self._choose_evicted()
        evicted = self._members[place]
        self._members[place] = peer
        del self._places[evicted]
        self._places[peer] = place
        return evicted

    def remove(self, peer: PeerId) -> bool:
        """Remove a member that is gone; its place stays free until another is offered. False if it was
        none."""
        place = self._places.pop(peer, None)
        if place is None:
            return False
        last = self._members.pop()
        if last != peer:
            self._members[place] = last
            self._places[last] = place
        return True

    def draw(self) -> PeerId | None:
        """Draw one member, each as likely as any: the output of the sampler."""
        if not self._members:
            return None
        return self._members[int(self._rng.random() * len(self._members))]

    def draw_rare(self) -> PeerId | None:
        """Draw two members and return the one that was seen less often: it is less likely a liar."""
        one, other = self.draw(), self.draw()
        if one is None or other is None:
            return None
        return one if self._sketch.estimate_count(one) <= self._sketch.estimate_count(other) else other

    def sample(self, size: int) -> list[PeerId]:
        """Return so many different members, or as many as there are."""
        return self._rng.sample(self._members, min(size, len(self._members)))

    def round(self) -> None:
        """Count a round of gossip."""
        self._rounds += 1

    def halve(self) -> None:
        """Halve the weight of all earlier appearances."""
        self._sketch.halve_counts()
        self._stale = REFRESH_COUNTS

    def _choose_evicted(self) -> int:
        """Choose the place of the member to evict."""
        one, other = int(self._rng.random() * self._size), int(self._rng.random() * self._size)
        seen = self._sketch.estimate_count
        return one if seen(self._members[one]) >= seen(self._members[other]) else other

    def _chance(self, peer: PeerId) -> float:
        """Return how likely an id is admitted."""
        if not self._quantile or self._stale >= REFRESH_COUNTS or self._rounds >= REFRESH_ROUNDS:
            self._stale = self._rounds = 0
            self._quantile = self._sketch.quantile(self._tau)
        seen = self._sketch.estimate_count(peer)
        return 1.0 if seen <= self._quantile else self._quantile / seen


KEY_BYTES = 32
LARGEST = 2**32 - 1

_FINEST = 256
"""The most that one appearance counts; see `halve_counts`."""


class CountMin:
    """Counters of ids. All counts can be halved at no cost, so that old appearances weigh less."""

    __slots__ = ("_cells", "_columns", "_held", "_key", "_places", "_remembered", "_rows", "_unit")

    def __init__(self, rows: int, columns: int, key: bytes, remembered: int = 1024) -> None:
        if not 1 <= rows <= 16 or not 1 <= columns <= 2**32:
            raise ValueError("a sketch has 1 to 16 rows, and at least one column")
        self._rows = rows
        self._columns = columns
        self._key = key[:KEY_BYTES]
        self._cells = array("I", bytes(4 * rows * columns))
        self._unit = 1
        """The amount that one appearance adds: it doubles where all counters would be halved."""
        self._held: dict[int, int] = {}
        """The number of counters with each value but zero: the quantile is read from it."""
        self._places: dict[bytes, tuple[int, ...]] = {}
        self._remembered = remembered

    def count_id(self, seen: bytes) -> float:
        """Count an id; return how often it was seen by now."""
        places = self._places.get(seen)
        if places is None:
            places = self._find_places(seen)
        cells = self._cells
        risen = min([cells[place] for place in places]) + self._unit
        if risen > LARGEST:
            risen = LARGEST
        held = self._held
        moved = 0
        for place in places:
            value = cells[place]
            if value < risen:
                cells[place] = risen
                moved += 1
                if value:
                    held[value] -= 1
        held[risen] = held.get(risen, 0) + moved
        return risen / self._unit

    def estimate_count(self, seen: bytes) -> float:
        """Estimate how often an id was seen: never less than it was."""
        places = self._places.get(seen)
        if places is None:
            places = self._find_places(seen)
        cells = self._cells
        return min([cells[place] for place in places]) / self._unit

    def quantile(self, tau: float) -> float:
        """Return the value that this share of the non-zero counters does not exceed; 0 if all are zero."""
        self._held = {value: many for value, many in self._held.items() if many}
        wanted = floor(tau * (sum(self._held.values()) - 1))
        for value in sorted(self._held):
            wanted -= self._held[value]
            if wanted < 0:
                return value / self._unit
        return 0.0

    def least(self) -> float:
        """Return the smallest of all counters, zeros included."""
        return min(self._cells) / self._unit

    def halve_counts(self) -> None:
        """Make all earlier appearances count half as much.

        Only relations of counts matter to a sampler, so later appearances count double instead; after some
        halvings the counters are really divided.
        """
        self._unit *= 2
        if self._unit < _FINEST:
            return
        self._cells = array("I", [cell // _FINEST for cell in self._cells])
        self._unit //= _FINEST
        self._held = {}
        for cell in self._cells:
            if cell:
                self._held[cell] = self._held.get(cell, 0) + 1

    def _find_places(self, seen: bytes) -> tuple[int, ...]:
        """Return the counter of an id in each row, remembered for the latest ids."""
        digest = hashlib.blake2b(seen, digest_size=4 * self._rows, key=self._key).digest()
        columns = self._columns
        places = tuple(
            [
                row * columns + int.from_bytes(digest[4 * row : 4 * row + 4], "little") % columns
                for row in range(self._rows)
            ]
        )
        if len(self._places) >= self._remembered:
            del self._places[next(iter(self._places))]
        self._places[seen] = places
        return places


class HeardPeers:
    """Checks the descriptors that others pass on, each once, and blames the peer that is at fault."""

    def __init__(
        self,
        ours: PeerId,
        acquaintances: KnownPeers,
        trust: Trust,
        check: DescriptorCheck,
        dropped: Callable[[PeerId], None],
    ) -> None:
        self._ours = ours
        self._acquaintances = acquaintances
        self._trust = trust
        self._check = check
        self._dropped = dropped
        """Called with each peer that turned out to be at fault."""

    def check_named(
        self,
        teller: PeerId,
        descriptors: Sequence[Descriptor],
        most: int,
        now: float,
        favoured: PeerId | None = None,
    ) -> tuple[list[PeerId], list[Record]]:
        """Learn the nodes that an answer names; return each with a good descriptor once, and records.

        A peer that was asked because the user trusts it (`favoured`) is not returned itself: it is asked so
        much oftener than others that counting it would keep it from the view, and that would show the trust.
        """
        wrong: dict[Reason, int] = {}
        if len(descriptors) > most:
            wrong[Reason.TOO_MANY] = len(descriptors) - most
        named: dict[PeerId, None] = {}
        is_vouching = self._trust.is_vouching(teller, now)
        for descriptor in descriptors[:most]:
            node = descriptor.peer
            if node == self._ours or node in named or self._trust.is_banned(node, now):
                continue
            fault = self._find_fault(descriptor, teller, now)
            if fault is not None:
                wrong[fault] = wrong.get(fault, 0) + 1
                self._blame(teller, node, fault, now)
            elif node == teller == favoured:
                continue
            elif node in self._acquaintances:
                named[node] = None
                if is_vouching:
                    self._trust.note_vouched(node, teller, now)
        records = [Record(Kind.REJECTED, peer=teller, reason=why, events=n) for why, n in wrong.items()]
        return ([] if self._trust.is_banned(teller, now) else list(named)), records

    def _find_fault(self, descriptor: Descriptor, teller: PeerId, now: float) -> Reason | None:
        """Learn a descriptor, or return what is wrong with it."""
        if self.is_known(descriptor, now):
            self._acquaintances.note_word(descriptor, teller)
            return None
        try:
            self._check(descriptor, now)
        except RemoteError as error:
            return error.reason
        self._acquaintances.note_word(descriptor, teller)
        self._acquaintances.learn_descriptor(descriptor, now)
        return None

    def is_known(self, descriptor: Descriptor, now: float) -> bool:
        """Return whether this very descriptor was checked before, and has not expired."""
        known = self._acquaintances.descriptor_of(descriptor.peer)
        return known is not None and descriptor.expires >= now and known == descriptor

    def _blame(self, teller: PeerId, node: PeerId, reason: Reason, now: float) -> None:
        culprit = teller if reason in _FAULT_OF_TELLER else node if reason in _FAULT_OF_NODE else None
        if culprit is not None:
            self._trust.note_offence(culprit, now)
            self._dropped(culprit)
