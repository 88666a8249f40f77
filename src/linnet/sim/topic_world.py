"""Simulated nodes with topics, whatever overlay they have: who there is, who is up, what is published."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.delivery.flood import Routing
from linnet.overlay.trackerless.trackerless import Trackerless
from linnet.peer.config import Identity
from linnet.sim.clock import START
from linnet.sim.gossip_peer import GossipPeer, OverlayMachine
from linnet.sim.gossip_topic import GossipTopic
from linnet.sim.gossip_world import GossipWorld, Weigh
from linnet.sim.identities import seeded_identity
from linnet.sim.interests import Interests, members_of
from linnet.sim.links import LinkModel, named_latency
from linnet.sim.luck import named_luck
from linnet.sim.overlay_meter import OverlayMeter, Published
from linnet.sim.overlay_report import OverlayScenario
from linnet.sim.verifier import RememberingVerifier
from linnet.store.memory import MemoryStore

KNOWN = 5
"""Nodes whose addresses are given to others; none of them lies."""
_START_ROUNDS = 3.0
"""Rounds over which all nodes start."""


def _written() -> None:
    """Nobody waits for a store in memory."""


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
        """Of a node without trackers."""
        self.peer: GossipPeer


class TopicWorld:
    """All nodes of a scenario, their links, and what is published. The overlay is up to those who derive."""

    def __init__(
        self,
        scenario: OverlayScenario,
        interests: Interests,
        starts: Mapping[int, float] | None = None,
        weigh: Weigh | None = None,
    ) -> None:
        self.scenario = scenario
        self.interests = interests
        seed = scenario.seed
        self.topic_ids = [topic_id(seed, number) for number in range(scenario.topics)]
        self.members = members_of(interests, scenario.topics)
        self._luck = named_luck(seed, "overlay")
        lying = dict.fromkeys(self._luck.sample(range(KNOWN, scenario.nodes), scenario.lying))
        self.nodes = [
            SimulatedNode(number, seeded_identity(seed, f"node-{number}", START), own, number in lying)
            for number, own in enumerate(interests)
        ]
        self.honest = [node for node in self.nodes if not node.lies]
        self.number_of = {node.identity.peer: node.number for node in self.nodes}
        self.meter = OverlayMeter(node.identity.peer for node in self.honest)
        named = scenario.latency
        latency = named_latency(named) if isinstance(named, str) else named
        links = LinkModel(latency, loss=scenario.loss)
        self.world = GossipWorld(seed, links, other=self.meter.noticed, weigh=weigh)
        self._cards = {(n.identity.author, n.identity.card.device): n.identity.card for n in self.nodes}
        self._verify = RememberingVerifier()
        self._place(starts or {})

    @property
    def period(self) -> float:
        """Seconds of a round."""
        return self.scenario.config.period

    def _place(self, starts: Mapping[int, float]) -> None:
        """Give all nodes a place and a moment to start."""
        regions = self.world.regions
        for node in self.nodes:
            self._make(node)
            self.world.add(node.identity.peer, node.peer, regions[node.number % len(regions)])
            drawn = self._luck.random() * _START_ROUNDS * self.period
            self.world.at(starts.get(node.number, drawn), partial(self._start, node))

    # What an overlay is.

    def _machine(self, node: SimulatedNode) -> OverlayMachine:
        """A new machine for a node that starts."""
        raise NotImplementedError

    def _begun(self, node: SimulatedNode, now: float) -> list[Any]:
        """What a machine does as its node starts."""
        raise NotImplementedError

    def routing(self, node: SimulatedNode, topic: TopicId) -> Routing | None:
        """To whom a node passes events on."""
        raise NotImplementedError

    # What nodes do.

    def run(self, until: float) -> None:
        """Let time pass; what nodes wrote meanwhile stays, so that no store holds how to take it back."""
        self.world.run(until)
        for node in self.nodes:
            node.store.commit(_written)

    def _make(self, node: SimulatedNode) -> None:
        overlay = self._machine(node)
        node.lives += 1
        told = {} if node.lives == 1 else node.peer.topics
        subscribed = [self.topic_ids[topic] for topic in node.topics]
        make = partial(self._topic, node)
        node.peer = GossipPeer(node.identity.peer, overlay, subscribed, make, node.lies)
        for topic, kept in told.items():
            kept.revive(self.routing(node, topic))
            node.peer.topics[topic] = kept

    def _topic(self, node: SimulatedNode, topic: TopicId) -> GossipTopic:
        luck = named_luck(self.scenario.seed, f"topic/{node.number}/{topic.hex()}")
        routing = self.routing(node, topic)
        return GossipTopic(topic, node.identity, self._cards, self._verify, routing, luck, self.meter.handed)

    def _start(self, node: SimulatedNode) -> None:
        node.up = True
        now = self.world.now
        self.world.perform(node.identity.peer, node.peer.spread(self._begun(node, now), now))

    def contact(self, number: int) -> Contact:
        """Where a node can be dialled."""
        return Contact(self.nodes[number].identity.peer, (f"sim:{number}",))

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
        able = self.up(self.members[topic])
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
