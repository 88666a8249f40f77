"""Simulated nodes with topics: with the shipped overlay without trackers, or with a tracker's graph.

One light network drives both, so that they can be compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

from msgspec import Struct

from linnet.core.effects import Send
from linnet.core.fair_shares import Origins
from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.inputs import Received
from linnet.delivery.flood import Routing
from linnet.event.event import Event
from linnet.machine.outbox import Outbox
from linnet.overlay.config import DEFAULT_DEGREE, MemberConfig, TrackerConfig
from linnet.overlay.gossip.messages import Alike, AskAlike, Descriptor, Pull, Pulled
from linnet.overlay.gossip.part import GossipOverlay
from linnet.overlay.notices import Adjacency, NeighborUp
from linnet.overlay.tracker import Tracker
from linnet.overlay.tracker_client import TopicOptions, TrackerClient
from linnet.peer.config import Identity
from linnet.sim.clock import START
from linnet.sim.light_network import LightNetwork, PartMachine, Weigh
from linnet.sim.light_topic import LightPeer, LightTopic, OverlayMachine, TopicSetting, references
from linnet.sim.links import LinkModel, named_latency
from linnet.sim.overlay.scenario import Interests, OverlayScenario, members_of
from linnet.sim.seeded_random import SeededEntropy, named_luck, seeded_identity
from linnet.sim.signature_cache import IDEAL, RememberingDescriptorCheck, RememberingVerifier
from linnet.store.memory import MemoryStore


class Conspiracy:
    """The shared knowledge of the liars: they know each other's descriptors."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._descriptors: dict[PeerId, Descriptor] = {}

    def join(self, descriptor: Descriptor) -> None:
        """Share a liar's present descriptor with the others."""
        self._descriptors[descriptor.peer] = descriptor

    def some(self, count: int, but: PeerId) -> tuple[Descriptor, ...]:
        """Return some liars to name."""
        able = [each for peer, each in self._descriptors.items() if peer != but]
        return tuple(self._rng.sample(able, min(count, len(able))))


class Liar:
    """A node that behaves like others, but names liars alone when asked for peers."""

    def __init__(self, machine: GossipOverlay, driven: PartMachine, conspiracy: Conspiracy) -> None:
        self.machine = machine
        self._driven = driven
        self._config = machine.peers.config
        self._conspiracy = conspiracy
        self.neighbors = machine.topics.neighbors

    def handle(self, event: Any, now: float) -> Sequence[Any]:  # noqa: ANN401 - as of any machine
        """See `PartMachine.handle`."""
        if isinstance(event, Received) and isinstance(event.message, Pull | AskAlike):
            own = self.machine.peers.own_profile(now).descriptor
            self._conspiracy.join(own)
            number = event.message.number
            if isinstance(event.message, Pull):
                others = self._conspiracy.some(self._config.answer - 1, own.peer)
                return [Send(event.peer, Pulled(number, (own, *others)))]
            others = self._conspiracy.some(self._config.gossip - 1, own.peer)
            return [Send(event.peer, Alike(number, (own, *others)))]
        return self._driven.handle(event, now)


WINDOW = 10.0
"""Seconds within which flooding should deliver an event."""


class Published(Struct):
    """One event, and its expected receivers."""

    event: Event
    topic: int
    publisher: PeerId
    at: float
    expected: dict[PeerId, None]
    """Honest subscribers that were up when it was published."""
    hits: int = 0


class OverlayMeter:
    """The counts of a simulation."""

    def __init__(self, honest: Iterable[PeerId]) -> None:
        self.published: dict[EventId, Published] = {}
        self.had: dict[PeerId, dict[EventId, None]] = {peer: {} for peer in honest}
        """The events that each honest node has."""
        self.causal_violations = 0
        self.repeated = 0
        self.handed_over = 0
        """Events handed over at honest nodes other than the publisher."""
        self.passed_on = 0
        """Those of them that arrived by flooding."""
        self.hops = 0
        self.max_hops = 0
        self.delay = 0.0
        self.first_up: dict[tuple[PeerId, TopicId], float] = {}
        """When a node first had a neighbour in a topic."""

    def publish(self, published: Published) -> None:
        """Note that an event is being published."""
        self.published[published.event.id] = published
        if published.publisher in self.had:
            self.had[published.publisher][published.event.id] = None

    def handed(self, peer: PeerId, event: Event, hops: int, now: float) -> None:
        """Count an event that an application was handed."""
        had = self.had.get(peer)
        known = self.published.get(event.id)
        if had is None or known is None:
            return  # A liar's; or the publisher's own, which is entered by `publish`.
        if event.id in had:
            self.repeated += 1
            return
        if any(ref not in had for ref in references(event)):
            self.causal_violations += 1
        had[event.id] = None
        self.handed_over += 1
        if hops:
            self.passed_on += 1
            self.hops += hops
            self.max_hops = max(self.max_hops, hops)
            self.delay += now - known.at
            if now - known.at <= WINDOW and peer in known.expected:
                known.hits += 1

    def noticed(self, peer: PeerId, effect: object, now: float) -> None:
        """Note when a node first gets a neighbour in a topic."""
        if isinstance(effect, NeighborUp):
            self.first_up.setdefault((peer, effect.topic), now)

    @property
    def hit_ratio(self) -> float:
        """The share of expected receivers that got an event within the window, by flooding alone."""
        expected = sum(len(each.expected) for each in self.published.values())
        return sum(each.hits for each in self.published.values()) / expected if expected else 1.0

    def repaired(self, members: Iterable[Iterable[PeerId]]) -> float:
        """Return the share of honest members that have each event of their topics by now."""
        by_topic = [list(each) for each in members]
        pairs = have = 0
        for event, each in self.published.items():
            honest = [peer for peer in by_topic[each.topic] if peer in self.had]
            pairs += len(honest)
            have += sum(event in self.had[peer] for peer in honest)
        return have / pairs if pairs else 1.0


KNOWN = 5
"""Nodes whose addresses are given to others; none of them lies."""
_START_ROUNDS = 3.0
"""Rounds over which all nodes start."""


def _written() -> None:
    """Do nothing: no caller waits for a store in memory."""


class SimulatedNode:
    """The lasting state of a node, and its machine while it is up."""

    __slots__ = ("identity", "lies", "lives", "machine", "number", "peer", "store", "topics", "up")

    def __init__(self, number: int, identity: Identity, topics: tuple[int, ...], lies: bool) -> None:
        self.number = number
        self.identity = identity
        self.topics = topics
        self.lies = lies
        self.store = MemoryStore()
        self.lives = 0
        self.up = False
        self.machine: GossipOverlay
        """Only for nodes without trackers."""
        self.peer: LightPeer


class TopicWorld:
    """All nodes of a scenario, their links, and their events. Subclasses choose the overlay."""

    def __init__(
        self,
        scenario: OverlayScenario,
        interests: Interests,
        starts: Mapping[int, float] | None = None,
        weigh: Weigh | None = None,
    ) -> None:
        self.scenario = scenario
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
        self.world = LightNetwork(seed, links, other=self.meter.noticed, weigh=weigh)
        cards = {(n.identity.author, n.identity.card.device): n.identity.card for n in self.nodes}
        self._setting = TopicSetting(cards, RememberingVerifier(), self.meter.handed)
        self._place(starts or {})

    @property
    def period(self) -> float:
        """The seconds of a round."""
        return self.scenario.config.period

    def _place(self, starts: Mapping[int, float]) -> None:
        """Give all nodes a region and a time to start."""
        regions = self.world.table.regions
        for node in self.nodes:
            self._make(node)
            self.world.add(node.identity.peer, node.peer, regions[node.number % len(regions)])
            drawn = self._luck.random() * _START_ROUNDS * self.period
            self.world.at(starts.get(node.number, drawn), partial(self._start, node))

    # What an overlay is.

    def _machine(self, node: SimulatedNode) -> OverlayMachine:
        """Make a machine for a node that starts."""
        raise NotImplementedError

    def _begun(self, node: SimulatedNode, now: float) -> list[Any]:
        """Start the machine of a node, and return its effects."""
        raise NotImplementedError

    def routing(self, node: SimulatedNode, topic: TopicId) -> Routing | None:
        """Return the function that chooses the receivers of events at a node."""
        raise NotImplementedError

    # What nodes do.

    def run(self, until: float) -> None:
        """Let time pass, and commit the writes of nodes, so that stores keep no undo journal."""
        self.world.run(until)
        for node in self.nodes:
            node.store.commit(_written)

    def _make(self, node: SimulatedNode) -> None:
        overlay = self._machine(node)
        node.lives += 1
        told = {} if node.lives == 1 else node.peer.topics
        subscribed = [self.topic_ids[topic] for topic in node.topics]
        make = partial(self._topic, node)
        node.peer = LightPeer(node.identity.peer, overlay, subscribed, make, node.lies)
        for topic, kept in told.items():
            kept.revive(self.routing(node, topic))
            node.peer.topics[topic] = kept

    def _topic(self, node: SimulatedNode, topic: TopicId) -> LightTopic:
        luck = named_luck(self.scenario.seed, f"topic/{node.number}/{topic.hex()}")
        routing = self.routing(node, topic)
        return LightTopic(topic, node.identity, routing, luck, self._setting)

    def _start(self, node: SimulatedNode) -> None:
        node.up = True
        now = self.world.now
        self.world.perform(node.identity.peer, node.peer.spread(self._begun(node, now), now))

    def contact(self, number: int) -> Contact:
        """Return the key and address of a node."""
        return Contact(self.nodes[number].identity.peer, (f"sim:{number}",))

    def leave(self, node: SimulatedNode) -> None:
        """Take a node down abruptly."""
        if node.up:
            node.up = False
            self.world.crash(node.identity.peer)

    def come_back(self, node: SimulatedNode) -> None:
        """Bring a node back with its store and its events."""
        if not node.up:
            self._make(node)
            self.world.restart(node.identity.peer, node.peer)
            self._start(node)

    def publish(self, topic: int, luck: Random) -> bool:
        """Let a random honest member that is up publish; return False if there is none."""
        able = self.up(self.members[topic])
        if not able:
            return False
        node, now = luck.choice(able), self.world.now
        told = node.peer.topic(self.topic_ids[topic])
        if told is None:
            return False
        event, effects = told.publish(b"%d" % len(self.meter.published), now)
        expected = {other.identity.peer: None for other in able if other is not node}
        self.meter.publish(Published(event, topic, node.identity.peer, now, expected))
        self.world.perform(node.identity.peer, effects)
        return True

    def up(self, numbers: Sequence[int]) -> list[SimulatedNode]:
        """Return those of these nodes that are honest and up."""
        nodes = (self.nodes[number] for number in numbers)
        return [node for node in nodes if node.up and not node.lies]

    def peers(self, numbers: Sequence[int]) -> list[PeerId]:
        """Return the keys of these nodes."""
        return [self.nodes[number].identity.peer for number in numbers]


def topic_id(seed: int, number: int) -> TopicId:
    """Return the topic of a number."""
    return TopicId(hashlib.sha256(f"linnet/sim/overlay/{seed}/{number}".encode()).digest())


class OverlayWorld(TopicWorld):
    """Nodes without trackers."""

    def __init__(
        self,
        scenario: OverlayScenario,
        interests: Interests,
        starts: Mapping[int, float] | None = None,
        weigh: Weigh | None = None,
    ) -> None:
        self._check = RememberingDescriptorCheck()
        self._driven: dict[int, PartMachine] = {}
        self._conspiracy = Conspiracy(named_luck(scenario.seed, "conspiracy"))
        super().__init__(scenario, interests, starts, weigh)

    def _machine(self, node: SimulatedNode) -> OverlayMachine:
        seed, name = self.scenario.seed, f"machine/{node.number}/{node.lives}"
        out = Outbox()
        node.machine = GossipOverlay(
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
        """Return the choice of the node's ring."""
        return partial(node.machine.topics.choose_targets, topic)

    def _begun(self, node: SimulatedNode, now: float) -> list[Any]:
        scenario = self.scenario
        if node.lives == 1 and not node.lies:
            able = [other for other in self.honest if other is not node]
            for friend in self._luck.sample(able, min(scenario.friends, len(able))):
                node.machine.peers.trust.set_trust(friend.identity.peer, 1.0)
        known = [number for number in range(min(KNOWN, scenario.nodes)) if number != node.number]
        given = self._luck.sample(known, min(scenario.bootstrap, len(known)))
        first = [self.contact(number) for number in given]

        def begin() -> None:
            node.machine.begin(first, now)
            for topic in node.topics:
                node.machine.topics.join_topic(self.topic_ids[topic], False, now)

        effects = self._driven[node.number].perform(begin, now)
        if node.lies:
            self._conspiracy.join(node.machine.peers.own_profile(now).descriptor)
        return effects


class TrackedWorld(TopicWorld):
    """Nodes that follow one tracker in all topics, and flood."""

    def __init__(
        self, scenario: OverlayScenario, interests: Interests, *, weigh: Weigh | None = None
    ) -> None:
        self._following: dict[int, tuple[TrackerClient, PartMachine]] = {}
        super().__init__(scenario, interests, weigh=weigh)
        self.tracker = seeded_identity(scenario.seed, "tracker", START).peer
        out = Outbox()
        tracker = Tracker(TrackerConfig(), named_luck(scenario.seed, "tracker"), out, Origins())
        self.world.add(self.tracker, PartMachine(out, tracker))

    def _machine(self, node: SimulatedNode) -> OverlayMachine:
        out = Outbox()
        member = TrackerClient(MemberConfig(), out, Adjacency(out), (f"sim:{node.number}",))
        machine = PartMachine(out, member)
        self._following[node.number] = member, machine
        return machine

    def routing(self, node: SimulatedNode, topic: TopicId) -> None:
        """Return None: events go to all neighbours."""
        return

    def _begun(self, node: SimulatedNode, now: float) -> list[Any]:
        member, machine = self._following[node.number]
        contact = Contact(self.tracker, ("sim:tracker",))

        def join() -> None:
            for topic in node.topics:
                member.join(TopicOptions(self.topic_ids[topic], (contact,), DEFAULT_DEGREE), now)

        return machine.perform(join, now)
