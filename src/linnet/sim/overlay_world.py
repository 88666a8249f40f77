"""Nodes without trackers in a light simulation: the shipped machine on each, liars among them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.delivery.flood import Routing
from linnet.overlay.trackerless.descriptor import check_descriptor, check_signature
from linnet.overlay.trackerless.messages import Descriptor
from linnet.overlay.trackerless.trackerless import Trackerless
from linnet.peer.config import Identity
from linnet.sim.clock import START
from linnet.sim.gossip_peer import GossipPeer
from linnet.sim.gossip_topic import GossipTopic
from linnet.sim.gossip_world import GossipWorld
from linnet.sim.ideal_group import IDEAL
from linnet.sim.identities import seeded_identity
from linnet.sim.interests import Interests, members_of
from linnet.sim.liars import Conspiracy, Liar
from linnet.sim.links import LinkModel, named_latency
from linnet.sim.luck import SeededEntropy, named_luck
from linnet.sim.overlay_meter import OverlayMeter, Published
from linnet.sim.overlay_report import OverlayScenario
from linnet.sim.verifier import RememberingVerifier
from linnet.store.memory import MemoryStore

_KNOWN = 5
"""Nodes whose addresses are given to others."""
_START_ROUNDS = 3.0
"""Rounds over which all nodes start."""


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


class SimulatedNode:
    """What stays of a node when it goes down, and its machine while it is up."""

    __slots__ = ("identity", "lies", "lives", "machine", "number", "peer", "store", "topics", "up")

    def __init__(self, number: int, identity: Identity, topics: tuple[int, ...], lies: bool) -> None:
        self.number = number
        self.identity = identity
        self.topics = topics
        self.lies = lies
        self.store = MemoryStore()
        self.lives = 0
        self.up = False
        self.machine: Trackerless
        self.peer: GossipPeer


class OverlayWorld:
    """All nodes of a scenario, their links, and what is published."""

    def __init__(self, scenario: OverlayScenario, interests: Interests) -> None:
        self.scenario = scenario
        self.interests = interests
        seed = scenario.seed
        self.topic_ids = [topic_id(seed, number) for number in range(scenario.topics)]
        self.members = members_of(interests, scenario.topics)
        self._luck = named_luck(seed, "overlay")
        lying = dict.fromkeys(self._luck.sample(range(_KNOWN, scenario.nodes), scenario.lying))
        self.nodes = [
            SimulatedNode(number, seeded_identity(seed, f"node-{number}", START), own, number in lying)
            for number, own in enumerate(interests)
        ]
        self.honest = [node for node in self.nodes if not node.lies]
        self.number_of = {node.identity.peer: node.number for node in self.nodes}
        self.meter = OverlayMeter(node.identity.peer for node in self.honest)
        links = LinkModel(named_latency(scenario.latency), loss=scenario.loss)
        self.world = GossipWorld(seed, links, other=self.meter.noticed)
        self._cards = {(n.identity.author, n.identity.card.device): n.identity.card for n in self.nodes}
        self._verify = RememberingVerifier()
        self._check = RememberedDescriptors()
        self._conspiracy = Conspiracy(named_luck(seed, "conspiracy"))
        self._place()

    @property
    def period(self) -> float:
        """Seconds of a round."""
        return self.scenario.config.period

    def _place(self) -> None:
        """Give all nodes a place and a moment to start."""
        regions = self.world.regions
        for node in self.nodes:
            self._make(node)
            self.world.add(node.identity.peer, node.peer, regions[node.number % len(regions)])
            at = self._luck.random() * _START_ROUNDS * self.period
            self.world.at(at, partial(self._start, node))

    def _make(self, node: SimulatedNode) -> None:
        """A machine for a node: a new one each time that it starts."""
        seed, name = self.scenario.seed, f"{node.number}/{node.lives}"
        node.lives += 1
        node.machine = machine = Trackerless(
            node.identity.device,
            self.scenario.config,
            node.store.cells,
            named_luck(seed, f"machine/{name}"),
            SeededEntropy(seed, f"machine/{name}"),
            (f"sim:{node.number}",),
            IDEAL,
            self._check,
        )
        overlay = Liar(machine, self._conspiracy) if node.lies else machine
        told = {} if node.lives == 1 else node.peer.topics
        subscribed = [self.topic_ids[topic] for topic in node.topics]
        node.peer = GossipPeer(node.identity.peer, overlay, subscribed, partial(self._topic, node), node.lies)
        for topic, kept in told.items():
            kept.revive(self._routing(node, topic))
            node.peer.topics[topic] = kept

    def _topic(self, node: SimulatedNode, topic: TopicId) -> GossipTopic:
        luck = named_luck(self.scenario.seed, f"topic/{node.number}/{topic.hex()}")
        routing = self._routing(node, topic)
        return GossipTopic(topic, node.identity, self._cards, self._verify, routing, luck, self.meter.handed)

    def _routing(self, node: SimulatedNode, topic: TopicId) -> Routing:
        return partial(node.machine.targets, topic)

    def contact(self, number: int) -> Contact:
        """Where a node can be dialled."""
        return Contact(self.nodes[number].identity.peer, (f"sim:{number}",))

    def _start(self, node: SimulatedNode) -> None:
        scenario, now = self.scenario, self.world.now
        node.up = True
        if node.lives == 1 and not node.lies:
            able = [other for other in self.honest if other is not node]
            for friend in self._luck.sample(able, min(scenario.friends, len(able))):
                node.machine.gossip.trust.set(friend.identity.peer, 1.0)
        known = [number for number in range(min(_KNOWN, scenario.nodes)) if number != node.number]
        given = self._luck.sample(known, min(scenario.bootstrap, len(known)))
        effects: list[Any] = [*node.machine.start([self.contact(number) for number in given], now)]
        for topic in node.topics:
            effects += node.machine.join(self.topic_ids[topic], False, now)
        if node.lies:
            self._conspiracy.join(node.machine.gossip.shown(now).descriptor)
        self.world.perform(node.identity.peer, node.peer.spread(effects, now))

    # What nodes do.

    def leave(self, node: SimulatedNode) -> None:
        """A node goes down without a word."""
        if node.up:
            node.up = False
            self.world.crash(node.identity.peer)

    def come_back(self, node: SimulatedNode) -> None:
        """A node comes up again with what it had written down, and the events that it had."""
        if not node.up:
            self._make(node)
            self.world.restart(node.identity.peer, node.peer)
            self._start(node)

    def publish(self, topic: int, luck: Random) -> bool:
        """Somebody honest who is there publishes in a topic; False if there is nobody."""
        able = [self.nodes[number] for number in self.members[topic]]
        able = [node for node in able if node.up and not node.lies]
        if not able:
            return False
        node, now = luck.choice(able), self.world.now
        told = node.peer.topic(self.topic_ids[topic])
        if told is None:
            return False
        event, effects = told.publish(b"%d" % len(self.meter.published), now)
        expected = (other.identity.peer for other in able if other is not node)
        self.meter.publish(Published(event, topic, node.identity.peer, now, expected))
        self.world.perform(node.identity.peer, effects)
        return True

    def up(self, numbers: Sequence[int]) -> list[SimulatedNode]:
        """Those of these nodes that are honest and there."""
        nodes = (self.nodes[number] for number in numbers)
        return [node for node in nodes if node.up and not node.lies]

    def peers(self, numbers: Sequence[int]) -> list[PeerId]:
        """The keys of these nodes."""
        return [self.nodes[number].identity.peer for number in numbers]


def topic_id(seed: int, number: int) -> TopicId:
    """The topic of a number."""
    return TopicId(hashlib.sha256(f"linnet/sim/overlay/{seed}/{number}".encode()).digest())
