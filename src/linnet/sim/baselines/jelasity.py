"""The framework of Jelasity et al. 2007: views of aged entries, exchanged with a random or the oldest peer.

Corners of it have names: blind (healing 0, swapping 0), healer (healing half of the view), swapper
(swapping half of it). Without `push` a node never tells anyone of itself: the authors leave that
out, and for a reason that `test_jelasity` shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from msgspec import Struct

from linnet.core.ids import PeerId
from linnet.sim.baselines.gossip import Ask, Entries, Entry, fresh


class JelasityConfig(Struct, frozen=True):
    """Where in the framework a protocol stands."""

    view: int = 20
    healing: int = 0
    swapping: int = 0
    is_tail: bool = False
    """Whether the oldest is asked, not a random one."""
    push: bool = True
    pull: bool = True

    def __post_init__(self) -> None:
        if self.healing < 0 or self.swapping < 0 or self.healing + self.swapping > self.view // 2:
            raise ValueError("healing and swapping are at most half of the view together")
        if not (self.push or self.pull):
            raise ValueError("a protocol pushes, pulls, or does both")


class Jelasity:
    """One node of the framework. The order of its view matters: what was just sent stands first."""

    def __init__(self, ours: PeerId, first: Sequence[PeerId], config: JelasityConfig, rng: Random) -> None:
        self._ours = ours
        self._config = config
        self._rng = rng
        self._entries: list[Entry] = list(fresh(first))[: config.view]

    @property
    def view(self) -> tuple[PeerId, ...]:
        """Whom it knows."""
        return tuple([entry.peer for entry in self._entries])

    @property
    def entries(self) -> Entries:
        """The view with its ages, in its order."""
        return tuple(self._entries)

    def begin(self) -> list[Ask]:
        """One question, to a random or the oldest peer."""
        if not self._entries:
            return []
        if self._config.is_tail:
            peer = max(self._entries, key=_age).peer
        else:
            peer = self._rng.choice(self._entries).peer
        return [Ask(peer, self._buffer() if self._config.push else (), self._config.pull)]

    def asked(self, peer: PeerId, entries: Entries) -> Entries:
        """The passive side: answers before it takes anything in."""
        answer = self._buffer() if self._config.pull else ()
        self._select(entries)
        self._grow_older()
        return answer

    def answered(self, peer: PeerId, entries: Entries) -> None:
        """The active side takes in the answer."""
        self._select(entries)

    def unanswered(self, peer: PeerId) -> None:
        """Nothing: ages alone drive out the dead."""

    def end(self) -> None:
        """All entries are older."""
        self._grow_older()

    def _grow_older(self) -> None:
        self._entries = [Entry(entry.peer, entry.age + 1) for entry in self._entries]

    def _buffer(self) -> Entries:
        """Ourselves, and the first part of the view after it was shuffled, its oldest moved to the end."""
        shuffled = self._rng.sample(self._entries, len(self._entries))
        oldest = sorted(range(len(shuffled)), key=lambda place: -shuffled[place].age)[: self._config.healing]
        last = set(oldest)
        self._entries = [entry for place, entry in enumerate(shuffled) if place not in last]
        self._entries += [shuffled[place] for place in sorted(oldest)]
        return (Entry(self._ours, 0), *self._entries[: self._config.view // 2 - 1])

    def _select(self, received: Entries) -> None:
        """Append, keep the youngest of each, then drop the oldest, those sent, and random ones."""
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
