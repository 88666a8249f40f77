"""Brahms (Bortnikov et al. 2009): limited pushes, pulls, and min-wise samples of all ids ever heard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from msgspec import Struct

from linnet.core.ids import PeerId
from linnet.sim.baselines.gossip import Ask, Entries, fresh

_MASK = 2**64 - 1
_MIX = 0x9E3779B97F4A7C15


class BrahmsConfig(Struct, frozen=True):
    """Sizes, and the shares of a view that come from pushes, from pulls, and from the samples."""

    view: int = 20
    samples: int = 20
    pushed: float = 0.45
    pulled: float = 0.45

    @property
    def pushes(self) -> int:
        """The number of pushes in a round; if more arrive, none is believed."""
        return round(self.pushed * self.view)

    @property
    def pulls(self) -> int:
        """The number of peers pulled from in a round."""
        return round(self.pulled * self.view)


class MinWise:
    """A sampler that keeps the id with the least secret hash of all that it sees: each is equally likely."""

    __slots__ = ("_least", "_salt", "peer")

    def __init__(self, rng: Random) -> None:
        self._salt = rng.getrandbits(64)
        self._least = _MASK + 1
        self.peer: PeerId | None = None

    def see(self, peer: PeerId) -> None:
        """Take in an id; repetitions do not matter."""
        mixed = ((int.from_bytes(peer[:8], "big") ^ self._salt) * _MIX) & _MASK
        value = ((mixed ^ (mixed >> 32)) * _MIX) & _MASK
        if value < self._least:
            self._least, self.peer = value, peer


class Brahms:
    """One node of Brahms."""

    def __init__(
        self,
        ours: PeerId,
        first: Sequence[PeerId],
        config: BrahmsConfig,
        rng: Random,
        is_up: Callable[[PeerId], bool] = lambda peer: True,
    ) -> None:
        self._ours = ours
        self._config = config
        self._rng = rng
        self._is_up = is_up
        self._view = list(first)[: config.view]
        self._samplers = [MinWise(rng) for _ in range(config.samples)]
        self._fed: dict[PeerId, None] = {}
        """Ids that all samplers have seen: seeing one again changes nothing."""
        self._pushed: list[PeerId] = []
        self._pulled: list[PeerId] = []
        self._feed(self._view)

    @property
    def view(self) -> tuple[PeerId, ...]:
        """The peers in the node's view."""
        return tuple(self._view)

    @property
    def samples(self) -> tuple[PeerId, ...]:
        """The ids that the samplers hold."""
        return tuple([sampler.peer for sampler in self._samplers if sampler.peer is not None])

    def begin(self) -> list[Ask]:
        """Push our id to some peers, and pull the views of some."""
        if not self._view:
            return []
        pushes = self._rng.choices(self._view, k=self._config.pushes)
        pulls = self._rng.choices(self._view, k=self._config.pulls)
        told = [Ask(peer, fresh([self._ours]), is_answered=False) for peer in pushes]
        return told + [Ask(peer, (), is_answered=True) for peer in pulls]

    def asked(self, peer: PeerId, entries: Entries) -> Entries:
        """Take in a push, which names its sender alone; answer a pull with the view."""
        if entries:
            self._pushed.append(peer)
            return ()
        return fresh(self._view)

    def answered(self, peer: PeerId, entries: Entries) -> None:
        """Take in a pulled view."""
        self._pulled += [entry.peer for entry in entries if entry.peer != self._ours]

    def unanswered(self, peer: PeerId) -> None:
        """Do nothing: the next view is drawn anew."""

    def end(self) -> None:
        """Draw the next view, unless there were too many pushes, or no push or no pull at all."""
        pushes, pulls = self._config.pushes, self._config.pulls
        pushed, pulled = self._pushed, self._pulled
        if pushed and pulled and len(pushed) <= pushes:
            history = self._config.view - pushes - pulls
            chosen = self._rng.sample(pushed, min(pushes, len(pushed)))
            chosen += self._rng.sample(pulled, min(pulls, len(pulled)))
            samples = self.samples
            chosen += self._rng.sample(samples, min(history, len(samples)))
            self._view = list(dict.fromkeys(chosen))
        self._feed(pushed)
        self._feed(pulled)
        self._pushed, self._pulled = [], []
        self._probe()

    def _feed(self, peers: Sequence[PeerId]) -> None:
        for peer in peers:
            if peer != self._ours and peer not in self._fed:
                self._fed[peer] = None
                for sampler in self._samplers:
                    sampler.see(peer)

    def _probe(self) -> None:
        """Restart one random sampler if its node is down."""
        place = self._rng.randrange(len(self._samplers))
        peer = self._samplers[place].peer
        if peer is not None and not self._is_up(peer):
            self._samplers[place] = MinWise(self._rng)
            self._fed.clear()
