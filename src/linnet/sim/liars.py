"""Nodes that lie to an overlay without trackers: whoever asks them hears of liars alone."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from linnet.core.effects import Send
from linnet.core.ids import PeerId, TopicId
from linnet.core.inputs import Received
from linnet.overlay.trackerless.messages import Alike, AskAlike, Descriptor, Pull, Pulled
from linnet.overlay.trackerless.trackerless import Trackerless
from linnet.sim.part_machine import PartMachine


class Conspiracy:
    """What the liars of a simulation know of each other: everything."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._descriptors: dict[PeerId, Descriptor] = {}

    def join(self, descriptor: Descriptor) -> None:
        """A liar shows the others what it says of itself now."""
        self._descriptors[descriptor.peer] = descriptor

    def some(self, count: int, but: PeerId) -> tuple[Descriptor, ...]:
        """Liars to tell of."""
        able = [each for peer, each in self._descriptors.items() if peer != but]
        return tuple(self._rng.sample(able, min(count, len(able))))


class Liar:
    """A node that does as others do, but names liars alone to whoever asks whom it knows."""

    def __init__(self, machine: Trackerless, driven: PartMachine, conspiracy: Conspiracy) -> None:
        self.machine = machine
        self._driven = driven
        self._config = machine.gossip.config
        self._conspiracy = conspiracy
        self.neighbors = machine.neighbors

    def handle(self, event: Any, now: float) -> Sequence[Any]:  # noqa: ANN401 - as of any machine
        """See `PartMachine.handle`."""
        if isinstance(event, Received) and isinstance(event.message, Pull | AskAlike):
            own = self.machine.gossip.shown(now).descriptor
            self._conspiracy.join(own)
            number = event.message.number
            if isinstance(event.message, Pull):
                others = self._conspiracy.some(self._config.answer - 1, own.peer)
                return [Send(event.peer, Pulled(number, (own, *others)))]
            others = self._conspiracy.some(self._config.gossip - 1, own.peer)
            return [Send(event.peer, Alike(number, (own, *others)))]
        return self._driven.handle(event, now)

    def targets(self, topic: TopicId, sources: Sequence[PeerId], up: Sequence[PeerId]) -> Sequence[PeerId]:
        """Nobody."""
        return ()
