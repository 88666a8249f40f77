"""Sampling by exchange of views: Cyclon, and the framework of Jelasity et al.

Cyclon (Voulgaris et al. 2005) shuffles parts of views with the oldest neighbour, in seven steps. In the
framework of Jelasity et al. 2007 views of aged entries are exchanged with a random or the oldest peer. Its
corner cases have names: blind (healing 0, swapping 0), healer (healing half of the view), swapper (swapping
half of it). Without `push` a node never introduces itself: the authors leave that out, and for a reason that
`test_jelasity` shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from msgspec import Struct

from linnet.core.ids import PeerId
from linnet.sim.baselines.gossip import Ask, Entries, Entry, fresh


class Cyclon:
    """One node of Cyclon. It withstands churn, and no liars at all."""

    def __init__(self, ours: PeerId, first: Sequence[PeerId], size: int, shuffled: int, rng: Random) -> None:
        self._ours = ours
        self._size = size
        self._shuffled = shuffled
        self._rng = rng
        self._entries: dict[PeerId, int] = {entry.peer: entry.age for entry in fresh(first)[:size]}
        self._sent: dict[PeerId, list[PeerId]] = {}
        """The entries sent to each peer, which its answer may replace."""

    @property
    def view(self) -> tuple[PeerId, ...]:
        """The peers in the node's view."""
        return tuple(self._entries)

    @property
    def entries(self) -> Entries:
        """The view with its ages."""
        return tuple([Entry(peer, age) for peer, age in self._entries.items()])

    def begin(self) -> list[Ask]:
        """Steps 1 to 4: take the oldest peer out of the view, and send it some of the view with us in its
        place."""
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
        """Answer with as many own entries, and take in those received (the passive side). Ages stay."""
        answer = self._some(self._shuffled)
        self._take(entries, [entry.peer for entry in answer])
        return answer

    def answered(self, peer: PeerId, entries: Entries) -> None:
        """Steps 5 to 7: take in the answer."""
        self._take(entries, self._sent.pop(peer, []))

    def unanswered(self, peer: PeerId) -> None:
        """Do nothing: the peer left the view before it was asked."""

    def end(self) -> None:
        """Do nothing: ages rise at the beginning of a round."""

    def _some(self, many: int) -> Entries:
        peers = self._rng.sample(list(self._entries), min(many, len(self._entries)))
        return tuple([Entry(peer, self._entries[peer]) for peer in peers])

    def _take(self, entries: Entries, replaceable: list[PeerId]) -> None:
        """Take in new entries, without ourselves: into free places first, then in place of entries that were
        sent."""
        for entry in entries[: self._shuffled]:
            if entry.peer == self._ours or entry.peer in self._entries:
                continue
            while len(self._entries) >= self._size and replaceable:
                self._entries.pop(replaceable.pop(), None)
            if len(self._entries) >= self._size:
                return
            self._entries[entry.peer] = entry.age


class JelasityConfig(Struct, frozen=True):
    """The parameters of a protocol in the framework."""

    view: int = 20
    healing: int = 0
    swapping: int = 0
    is_tail: bool = False
    """Whether the oldest peer is asked instead of a random one."""
    push: bool = True
    pull: bool = True

    def __post_init__(self) -> None:
        if self.healing < 0 or self.swapping < 0 or self.healing + self.swapping > self.view // 2:
            raise ValueError("healing and swapping are at most half of the view together")
        if not (self.push or self.pull):
            raise ValueError("a protocol pushes, pulls, or does both")


class Jelasity:
    """One node of the framework. The order of its view matters: the entries just sent stand first."""

    def __init__(self, ours: PeerId, first: Sequence[PeerId], config: JelasityConfig, rng: Random) -> None:
        self._ours = ours
        self._config = config
        self._rng = rng
        self._entries: list[Entry] = list(fresh(first))[: config.view]

    @property
    def view(self) -> tuple[PeerId, ...]:
        """The peers in the node's view."""
        return tuple([entry.peer for entry in self._entries])

    @property
    def entries(self) -> Entries:
        """The view with its ages, in its order."""
        return tuple(self._entries)

    def begin(self) -> list[Ask]:
        """Ask one peer, a random or the oldest one."""
        if not self._entries:
            return []
        if self._config.is_tail:
            peer = max(self._entries, key=_age).peer
        else:
            peer = self._rng.choice(self._entries).peer
        return [Ask(peer, self._buffer() if self._config.push else (), self._config.pull)]

    def asked(self, peer: PeerId, entries: Entries) -> Entries:
        """Answer before taking anything in (the passive side)."""
        answer = self._buffer() if self._config.pull else ()
        self._select(entries)
        self._grow_older()
        return answer

    def answered(self, peer: PeerId, entries: Entries) -> None:
        """Take in the answer (the active side)."""
        self._select(entries)

    def unanswered(self, peer: PeerId) -> None:
        """Do nothing: ages alone drive out dead peers."""

    def end(self) -> None:
        """Age all entries."""
        self._grow_older()

    def _grow_older(self) -> None:
        self._entries = [Entry(entry.peer, entry.age + 1) for entry in self._entries]

    def _buffer(self) -> Entries:
        """Return ourselves with the first part of the shuffled view, whose oldest entries moved to its
        end."""
        shuffled = self._rng.sample(self._entries, len(self._entries))
        oldest = sorted(range(len(shuffled)), key=lambda place: -shuffled[place].age)[: self._config.healing]
        last = set(oldest)
        self._entries = [entry for place, entry in enumerate(shuffled) if place not in last]
        self._entries += [shuffled[place] for place in sorted(oldest)]
        return (Entry(self._ours, 0), *self._entries[: self._config.view // 2 - 1])

    def _select(self, received: Entries) -> None:
        """Append, keep the youngest entry of each peer, then drop the oldest, those sent, and random ones."""
        merged = [entry for entry in (*self._entries, *received) if entry.peer != self._ours]
        youngest: dict[PeerId, int] = {}
        for place, entry in enumerate(merged):
            if entry.peer not in youngest or entry.age < merged[youngest[entry.peer]].age:
                youngest[entry.peer] = place
        kept = [entry for place, entry in enumerate(merged) if youngest[entry.peer] == place]
        size = self._config.view
        for _ in range(min(self._config.healing, len(kept) - size)):
            kept.remove(max(kept, key=_age))
        del kept[: max(0, min(self._config.swapping, len(kept) - size))]
        while len(kept) > size:
            kept.pop(self._rng.randrange(len(kept)))
        self._entries = kept


def _age(entry: Entry) -> int:
    return entry.age
