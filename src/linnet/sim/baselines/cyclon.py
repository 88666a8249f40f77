"""Cyclon (Voulgaris et al. 2005): shuffles parts of views with the oldest neighbour, in seven steps."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from linnet.core.ids import PeerId
from linnet.sim.baselines.gossip import Ask, Entries, Entry, fresh


class Cyclon:
    """One node. It withstands churn, and no liars at all."""

    def __init__(self, ours: PeerId, first: Sequence[PeerId], size: int, shuffled: int, rng: Random) -> None:
        self._ours = ours
        self._size = size
        self._shuffled = shuffled
        self._rng = rng
        self._entries: dict[PeerId, int] = {entry.peer: entry.age for entry in fresh(first)[:size]}
        self._sent: dict[PeerId, list[PeerId]] = {}
        """What was sent to whom and may be replaced by the answer."""

    @property
    def view(self) -> tuple[PeerId, ...]:
        """Whom it knows."""
        return tuple(self._entries)

    @property
    def entries(self) -> Entries:
        """The view with its ages."""
        return tuple([Entry(peer, age) for peer, age in self._entries.items()])

    def begin(self) -> list[Ask]:
        """Steps 1 to 4: the oldest leaves the view and gets some of it, with us in its own place."""
        self._sent.clear()
        if not self._entries:
            return []
        self._entries = {peer: age + 1 for peer, age in self._entries.items()}
        oldest = max(self._entries, key=self._entries.__getitem__)
        del self._entries[oldest]
        others = self._some(self._shuffled - 1)
        self._sent[oldest] = [entry.peer for entry in others]
        return [Ask(oldest, (Entry(self._ours, 0), *others), is_answered=True)]

    def asked(self, peer: PeerId, entries: Entries) -> Entries:
        """The passive side: sends as many of its own, and takes in what came. Its ages stay."""
        answer = self._some(self._shuffled)
        self._take(entries, [entry.peer for entry in answer])
        return answer

    def answered(self, peer: PeerId, entries: Entries) -> None:
        """Steps 5 to 7."""
        self._take(entries, self._sent.pop(peer, []))

    def unanswered(self, peer: PeerId) -> None:
        """Nothing to do: it left the view before it was asked."""

    def end(self) -> None:
        """Nothing: ages rise at the beginning."""

    def _some(self, many: int) -> Entries:
        peers = self._rng.sample(list(self._entries), min(many, len(self._entries)))
        return tuple([Entry(peer, self._entries[peer]) for peer in peers])

    def _take(self, entries: Entries, replaceable: list[PeerId]) -> None:
        """Without ourselves and what is there already: free places first, then those of what was sent."""
        for entry in entries[: self._shuffled]:
            if entry.peer == self._ours or entry.peer in self._entries:
                continue
            while len(self._entries) >= self._size and replaceable:
                self._entries.pop(replaceable.pop(), None)
            if len(self._entries) >= self._size:
                return
            self._entries[entry.peer] = entry.age
