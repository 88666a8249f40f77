"""The sampling that nodes use, behind the protocol of the baselines."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.overlay.trackerless.acquaintances import Acquaintances
from linnet.overlay.trackerless.config import TrackerlessConfig
from linnet.overlay.trackerless.messages import Descriptor, Pull
from linnet.overlay.trackerless.sampling import Sampling
from linnet.overlay.trackerless.trust import Trust
from linnet.sim.baselines.gossip import Ask, Entries, fresh
from linnet.store.memory import MemoryStore

_FAR = 2**40


class Directory:
    """Descriptors of all nodes of a bench, one each; signatures are not what a bench is about."""

    def __init__(self) -> None:
        self._descriptors: dict[PeerId, Descriptor] = {}

    def __getitem__(self, peer: PeerId) -> Descriptor:
        descriptor = self._descriptors.get(peer)
        if descriptor is None:
            descriptor = Descriptor(peer, 1, 1, b"", 0, 1, (), _FAR, bytes(64))
            self._descriptors[peer] = descriptor
        return descriptor


class Shipped:
    """One node."""

    def __init__(
        self,
        ours: PeerId,
        first: Sequence[PeerId],
        trusted: Sequence[PeerId],
        rng: Random,
        config: TrackerlessConfig,
        directory: Directory,
    ) -> None:
        self._ours = ours
        self._config = config
        self._directory = directory
        self._rounds = 0
        self.trusted = tuple(trusted)
        """Whom its user trusts."""
        self.refused: dict[Reason, int] = {}
        """Pulls that it did not answer, by why."""
        acquaintances = Acquaintances()
        trust = Trust(MemoryStore().cells, config)
        key = rng.randbytes(32)
        self.sampling = Sampling(ours, config, acquaintances, trust, rng, key, lambda descriptor, now: None)
        for peer in first:
            self.sampling.meet(directory[peer], 0.0)
        for peer in trusted:
            acquaintances.learn(directory[peer], 0.0)
            trust.set(peer, 1.0)

    @property
    def view(self) -> tuple[PeerId, ...]:
        """Whom it knows."""
        return self.sampling.view

    def begin(self) -> list[Ask]:
        """One pull, which says who asks."""
        target = self.sampling.target(self._now)
        return [] if target is None else [Ask(target, fresh([self._ours]), is_answered=True)]

    def asked(self, peer: PeerId, entries: Entries) -> Entries:
        """The answer to a pull; none if it is refused."""
        pull = Pull(0, self._directory[entries[0].peer])
        try:
            answer, _ = self.sampling.asked(peer, pull, self._directory[self._ours], self._now)
        except RemoteError as error:
            self.refused[error.reason] = self.refused.get(error.reason, 0) + 1
            return ()
        return fresh([descriptor.peer for descriptor in answer.nodes])

    def answered(self, peer: PeerId, entries: Entries) -> None:
        """An answer came."""
        nodes = tuple([self._directory[entry.peer] for entry in entries])
        self.sampling.pulled(peer, nodes, self._now)

    def unanswered(self, peer: PeerId) -> None:
        """No answer came."""
        self.sampling.failed(peer, self._now)

    def end(self) -> None:
        """The round is over."""
        self._rounds += 1
        self.sampling.round(self._now)

    @property
    def _now(self) -> float:
        return self._rounds * self._config.period
