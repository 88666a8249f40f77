"""Sampling by pulls with its parts taken out one by one, to show what each is for."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple, Protocol

from linnet.core.ids import PeerId
from linnet.overlay.trackerless.sampler import StreamSampler
from linnet.sim.baselines.gossip import Ask, Entries, fresh


class Memory(Protocol):
    """A stream sampler: the one that nodes use, or the published one."""

    @property
    def members(self) -> tuple[PeerId, ...]:
        """Whom it holds."""

    def count(self, peer: PeerId) -> None:
        """An id appeared."""

    def offer(self, peer: PeerId) -> PeerId | None:
        """Let an id in, or not."""


class Parts(NamedTuple):
    """Which parts there are."""

    answer: int = 20
    offered: int = 1
    """Ids of an answer that are offered to the memory."""
    is_introduced: bool = True
    """Whether whoever asks is taken in by the one who is asked."""
    halve_rounds: int = 0
    """Rounds after which counts are halved; 0: never."""


class AnyMemory:
    """Lets in whoever is offered, in a random place: no counting at all."""

    def __init__(self, size: int, rng: Random) -> None:
        self._size = size
        self._rng = rng
        self._members: list[PeerId] = []

    @property
    def members(self) -> tuple[PeerId, ...]:
        """Whom it holds."""
        return tuple(self._members)

    def count(self, peer: PeerId) -> None:
        """It does not."""

    def offer(self, peer: PeerId) -> PeerId | None:
        """Let an id in; returns whom it replaces."""
        if peer in self._members:
            return None
        if len(self._members) < self._size:
            self._members.append(peer)
            return None
        place = self._rng.randrange(self._size)
        evicted, self._members[place] = self._members[place], peer
        return evicted


class EvenEviction(StreamSampler):
    """The sampler of nodes as it would be if any member gave way alike, as published."""

    __slots__ = ()

    def _crowded(self) -> int:
        return int(self._rng.random() * self._size)


class Pulling:
    """One node that pulls from random members of its memory."""

    def __init__(
        self, ours: PeerId, first: Sequence[PeerId], memory: Memory, parts: Parts, rng: Random
    ) -> None:
        self._ours = ours
        self._memory = memory
        self._parts = parts
        self._rng = rng
        self._rounds = 0
        for peer in first:
            memory.offer(peer)

    @property
    def view(self) -> tuple[PeerId, ...]:
        """Whom it knows."""
        return self._memory.members

    def begin(self) -> list[Ask]:
        """One pull."""
        view = self.view
        if not view:
            return []
        return [Ask(self._rng.choice(view), fresh([self._ours]), is_answered=True)]

    def asked(self, peer: PeerId, entries: Entries) -> Entries:
        """Answers with itself and some of its memory; the one who asked may be taken in."""
        view = self.view
        told = self._rng.sample(view, min(self._parts.answer - 1, len(view)))
        if self._parts.is_introduced:
            self._memory.count(peer)
            self._memory.offer(peer)
        return fresh([self._ours, *told])

    def answered(self, peer: PeerId, entries: Entries) -> None:
        """Counts all, offers some."""
        peers = list(dict.fromkeys([entry.peer for entry in entries if entry.peer != self._ours]))
        for named in peers:
            self._memory.count(named)
        for named in self._rng.sample(peers, min(self._parts.offered, len(peers))):
            self._memory.offer(named)

    def unanswered(self, peer: PeerId) -> None:
        """Nothing."""

    def end(self) -> None:
        """Counts age, if they do."""
        self._rounds += 1
        if isinstance(self._memory, StreamSampler):
            self._memory.round()
            if self._parts.halve_rounds and self._rounds % self._parts.halve_rounds == 0:
                self._memory.halve()
