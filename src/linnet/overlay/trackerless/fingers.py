"""Fingers: a few peers that are quite unlike us, so that a search can leave the cluster it begins in.

Only our own random sample is drawn from, and never just the unlikest: otherwise whoever shows nothing would
become everyone's finger. One at a time is taken or replaced, and none before it served for a while.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from random import Random

from linnet.core.ids import PeerId
from linnet.overlay.trackerless.acquaintances import Acquaintances
from linnet.overlay.trackerless.config import TrackerlessConfig
from linnet.overlay.trackerless.likeness import Likeness
from linnet.overlay.trackerless.trust import Trust

LOWEST = 0.2
"""The share of the sample, the unlikest, that a finger is drawn from."""
FEWEST = 4.0
"""Bits that a finger must seem to set: who seems to have no topics bridges nothing."""


class Fingers:
    """The fingers of one node."""

    def __init__(
        self,
        ours: PeerId,
        config: TrackerlessConfig,
        acquaintances: Acquaintances,
        trust: Trust,
        likeness: Likeness,
        rng: Random,
    ) -> None:
        self._ours = ours
        self._config = config
        self._acquaintances = acquaintances
        self._trust = trust
        self._likeness = likeness
        self._rng = rng
        self._rounds = 0
        self._changed = 0
        """The round in which one was last replaced."""
        self._since: dict[PeerId, int] = {}
        """The fingers, oldest first, with the round in which each was taken."""

    @property
    def peers(self) -> tuple[PeerId, ...]:
        """Who they are."""
        return tuple(self._since)

    def round(self, sample: Sequence[PeerId], now: float) -> None:
        """Take one if one is lacking; else, when it is time, one in place of the oldest."""
        self._rounds += 1
        for peer in [peer for peer in self._since if self._unlikeness(peer, now) is None]:
            self.drop(peer)
        lacking = len(self._since) < self._config.fingers
        if not lacking and self._rounds - self._changed < self._config.finger_rounds:
            return
        candidates = self._lowest(sample, now)
        if not candidates or not self._config.fingers:
            return
        if not lacking:
            oldest = next(iter(self._since))
            if self._rounds - self._since[oldest] < self._config.finger_rounds:
                return
            self.drop(oldest)
            self._changed = self._rounds
        chosen = self._rng.choice(candidates)
        self._since[chosen] = self._rounds
        self._acquaintances.pin(chosen)

    def drop(self, peer: PeerId) -> None:
        """Let a finger go: it is gone, or broke the protocol."""
        if self._since.pop(peer, None) is not None:
            self._acquaintances.unpin(peer)

    def _lowest(self, sample: Sequence[PeerId], now: float) -> list[PeerId]:
        """The unlikest fifth of the sample, without those that are fingers already."""
        likeness = {peer: value for peer in sample if (value := self._unlikeness(peer, now)) is not None}
        ranked = sorted(likeness, key=likeness.__getitem__)
        return [peer for peer in ranked[: ceil(len(ranked) * LOWEST)] if peer not in self._since]

    def _unlikeness(self, peer: PeerId, now: float) -> float | None:
        """How like us a peer is, if it may be a finger at all."""
        descriptor = self._acquaintances.descriptor(peer)
        if peer == self._ours or descriptor is None or descriptor.expires < now:
            return None
        shown = self._likeness.shown(descriptor)
        if shown is None or shown.ones < FEWEST or self._trust.is_banned(peer, now):
            return None
        return self._likeness.cosine(descriptor)
