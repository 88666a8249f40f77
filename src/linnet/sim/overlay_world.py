"""Nodes without trackers in a light simulation: the shipped machine on each, liars among them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from linnet.core.ids import TopicId
from linnet.delivery.flood import Routing
from linnet.machine.outbox import Outbox
from linnet.overlay.adjacency import Adjacency
from linnet.overlay.trackerless.descriptor import check_descriptor, check_signature
from linnet.overlay.trackerless.messages import Descriptor
from linnet.overlay.trackerless.trackerless import Trackerless
from linnet.sim.gossip_peer import OverlayMachine
from linnet.sim.gossip_world import Weigh
from linnet.sim.ideal_group import IDEAL
from linnet.sim.interests import Interests
from linnet.sim.liars import Conspiracy, Liar
from linnet.sim.luck import SeededEntropy, named_luck
from linnet.sim.overlay_report import OverlayScenario
from linnet.sim.part_machine import PartMachine
from linnet.sim.topic_world import KNOWN, SimulatedNode, TopicWorld


class RememberedDescriptors:
    """`check_descriptor` that checks a signature once for all nodes of a simulation."""

    def __init__(self) -> None:
        self._good: dict[bytes, Descriptor] = {}
        self.checked = 0

    def __call__(self, descriptor: Descriptor, now: float) -> None:
        """See `check_descriptor`."""
        check_descriptor(descriptor, now, self._signed)

    def _signed(self, descriptor: Descriptor) -> None:
        known = self._good.get(descriptor.sig)
        if known is not descriptor and known != descriptor:
            self.checked += 1
            check_signature(descriptor)
            self._good[descriptor.sig] = descriptor


class OverlayWorld(TopicWorld):
    """Nodes without trackers."""

    def __init__(
        self,
        scenario: OverlayScenario,
        interests: Interests,
        starts: Mapping[int, float] | None = None,
        weigh: Weigh | None = None,
    ) -> None:
        self._check = RememberedDescriptors()
        self._driven: dict[int, PartMachine] = {}
        self._conspiracy = Conspiracy(named_luck(scenario.seed, "conspiracy"))
        super().__init__(scenario, interests, starts, weigh)

    def _machine(self, node: SimulatedNode) -> OverlayMachine:
        seed, name = self.scenario.seed, f"machine/{node.number}/{node.lives}"
        out = Outbox()
        node.machine = Trackerless(
            node.identity.device,
            self.scenario.config,
            node.store.cells,
            named_luck(seed, name),
            SeededEntropy(seed, name),
            out,
            Adjacency(out),
            (f"sim:{node.number}",),
            IDEAL,
            self._check,
        )
        driven = self._driven[node.number] = PartMachine(out, node.machine)
        return Liar(node.machine, driven, self._conspiracy) if node.lies else driven

    def routing(self, node: SimulatedNode, topic: TopicId) -> Routing:
        """As its ring has it."""
        return partial(node.machine.targets, topic)

    def _begun(self, node: SimulatedNode, now: float) -> list[Any]:
        scenario = self.scenario
        if node.lives == 1 and not node.lies:
            able = [other for other in self.honest if other is not node]
            for friend in self._luck.sample(able, min(scenario.friends, len(able))):
                node.machine.gossip.trust.set(friend.identity.peer, 1.0)
        known = [number for number in range(min(KNOWN, scenario.nodes)) if number != node.number]
        given = self._luck.sample(known, min(scenario.bootstrap, len(known)))
        first = [self.contact(number) for number in given]

        def begin() -> None:
            node.machine.begin(first, now)
            for topic in node.topics:
                node.machine.join(self.topic_ids[topic], False, now)

        effects = self._driven[node.number].perform(begin, now)
        if node.lies:
            self._conspiracy.join(node.machine.gossip.shown(now).descriptor)
        return effects
