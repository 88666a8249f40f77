"""The nodes of a stream scenario: how they are made, join, and settle into an overlay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import get_args

from msgspec import Struct

from linnet.core.effects import Send
from linnet.core.hello import Hello
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import Received
from linnet.delivery.config import DeliveryConfig
from linnet.overlay.config import MemberConfig, TrackerConfig
from linnet.overlay.messages import OverlayMessage
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.interface import Effect, Examine, Input, NodeMachine, NodeStatus, Start
from linnet.peer.peer import Peer
from linnet.sim.clock import START
from linnet.sim.estimate import Edges
from linnet.sim.identities import seeded_identity
from linnet.sim.links import LinkModel, named_latency
from linnet.sim.luck import named_luck
from linnet.sim.meter import Meter
from linnet.sim.network import Network
from linnet.sim.scenario import STREAM, StreamScenario
from linnet.sim.verifier import RememberingCardCheck, RememberingVerifier
from linnet.store.memory import MemoryStore
from linnet.streams.commands import Subscribe
from linnet.streams.options import StorageRule, StreamOptions
from linnet.trace.sink import TraceSink

HINTS = ("sim://node",)
FIRST_JOIN = 1.0
"""Virtual second of the first join; the tracker is there before."""

CALM = 5.0
"""Seconds without a change after which a regular overlay counts as settled."""

STEP = 1.0
"""Seconds between looks at whether it has."""

_SUBSCRIPTION = 1
_OVERLAY_MESSAGES = frozenset(get_args(OverlayMessage))


class Overlay(Struct, frozen=True):
    """Who has whom as a neighbour, as the nodes themselves say."""

    neighbors: dict[PeerId, tuple[PeerId, ...]]
    degree: int
    """The degree that was asked for."""

    def degrees(self) -> Counter[int]:
        """How many nodes there are of each degree."""
        return Counter(map(len, self.neighbors.values()))

    def is_regular(self) -> bool:
        """Whether each node has the degree asked for; one link end may be left over if the sum is odd."""
        nodes = len(self.neighbors)
        wanted = min(self.degree, nodes - 1)
        degrees = self.degrees()
        spare = nodes * wanted % 2
        return degrees[wanted] == nodes or bool(
            spare and degrees[wanted] == nodes - 1 and degrees[wanted - 1] == 1
        )


class Counted:
    """A tracker, with its control messages counted."""

    def __init__(self, machine: NodeMachine) -> None:
        self._machine = machine
        self.messages = 0

    @property
    def hello(self) -> Hello:
        """See `NodeMachine.hello`."""
        return self._machine.hello

    def handle(self, event: Input, now: float) -> list[Effect]:
        """See `NodeMachine.handle`."""
        if type(event) is Received and type(event.message) in _OVERLAY_MESSAGES:
            self.messages += 1
        effects = self._machine.handle(event, now)
        for effect in effects:
            if type(effect) is Send and type(effect.message) in _OVERLAY_MESSAGES:
                self.messages += 1
        return effects


class StreamWorld:
    """A network with one tracker and the nodes of one stream."""

    def __init__(self, scenario: StreamScenario, trace: TraceSink) -> None:
        self.scenario = scenario
        self.meter = Meter(trace)
        named = scenario.latency
        table = named_latency(named) if isinstance(named, str) else named
        links = LinkModel(table, scenario.jitter, scenario.loss, scenario.bandwidth)
        self.network = Network(scenario.seed, links, self.meter)
        self._verifier = RememberingVerifier()
        self._card_check = RememberingCardCheck()
        self._identities: dict[PeerId, Identity] = {}
        self._stores: dict[PeerId, MemoryStore] = {}
        self._names: dict[PeerId, str] = {}
        tracker = self._identity("tracker")
        self._tracker = Contact(tracker.peer, HINTS)
        region = scenario.tracker_region
        self._counted = Counted(self._peer("tracker", tracker))
        self.network.add(
            tracker.peer, self._counted, region=region if region in table.regions else table.regions[0]
        )
        self.network.ask(tracker.peer, Start(), at=0.0)
        regions = [table.regions[number % len(table.regions)] for number in range(scenario.nodes)]
        named_luck(scenario.seed, "places").shuffle(regions)
        self.peers = [self._add(number, region) for number, region in enumerate(regions)]
        """The stream's nodes, in the order in which they join."""

    @property
    def control_messages(self) -> int:
        """Messages about the overlay that the tracker has sent and received."""
        return self._counted.messages

    @property
    def converged_at(self) -> float | None:
        """Virtual seconds at which the overlay changed last."""
        changed_at = self.meter.changed_at
        return None if changed_at is None else changed_at - START

    def _add(self, number: int, region: str) -> PeerId:
        name = f"node {number}"
        identity = self._identity(name)
        machine = self._peer(name, identity)
        store = self._stores[identity.peer]
        self.network.add(identity.peer, machine, region=region, deliver=self.meter.deliver, store=store)
        return identity.peer

    def _identity(self, name: str) -> Identity:
        identity = seeded_identity(self.scenario.seed, name, START)
        self._identities[identity.peer] = identity
        self._stores[identity.peer] = MemoryStore()
        self._names[identity.peer] = name
        return identity

    def _peer(self, name: str, identity: Identity) -> Peer:
        scenario = self.scenario
        is_tracker = name == "tracker"
        stores = not is_tracker and int(name.removeprefix("node ")) < scenario.storage
        config = PeerConfig(
            listens=HINTS,
            trackers=(Contact(identity.peer, HINTS) if is_tracker else self._tracker,),
            is_tracker=is_tracker,
            storage=(StorageRule(STREAM),) if stores else (),
            streams={STREAM: StreamOptions(scenario.degree, scenario.near)},
            member=MemberConfig(control=scenario.control),
            tracker=TrackerConfig(control=scenario.control),
            delivery=DeliveryConfig(suppress=scenario.suppress),
        )
        luck = named_luck(scenario.seed, name)
        store = self._stores[identity.peer]
        return Peer(config, identity, store, luck, self._verifier, self._card_check)

    def join(self) -> None:
        """Let all nodes join, and run until the last has asked to."""
        for number, peer in enumerate(self.peers):
            self._start(peer, FIRST_JOIN + number * self.scenario.join, since=None)
        self.network.run(FIRST_JOIN + (len(self.peers) - 1) * self.scenario.join)

    def still(self) -> None:
        """Let the tracker fall silent, and what it ordered last be carried out: the overlay stays then."""
        self.network.crash(self._tracker.peer, silent=True)
        self.network.run(self.network.elapsed + CALM)

    def revive(self, peer: PeerId, since: float | None) -> NodeMachine:
        """A new machine for a node that comes back, with its keys and its store."""
        self._start(peer, self.network.elapsed, since)
        return self._peer(self._names[peer], self._identities[peer])

    def _start(self, peer: PeerId, at: float, since: float | None) -> None:
        self.network.ask(peer, Start(), at=at)
        self.network.ask(peer, Subscribe(_SUBSCRIPTION, STREAM, since), at=at)

    def settle(self, tell: Callable[[float], None]) -> bool:
        """Run until the overlay is regular and calm, or the scenario's limit; returns whether it is."""
        network = self.network
        joined = network.elapsed
        limit = joined + self.scenario.settle_limit
        until = joined
        # What was asked for decides, not the clock: that rounds, and may stay below the limit for good.
        while until < limit:
            until = min(limit, network.elapsed + STEP)
            network.run(until)
            tell((network.elapsed - joined) / self.scenario.settle_limit)
            changed = max(joined, self.converged_at or 0.0)
            if network.elapsed - changed >= CALM and self.overlay().is_regular():
                return True
        return self.overlay().is_regular()

    def overlay(self) -> Overlay:
        """The overlay as it stands; nodes that are down have no neighbours."""
        requests = {peer: self.network.ask(peer, Examine()) for peer in self.peers}
        self.network.run(self.network.elapsed)
        neighbors: dict[PeerId, tuple[PeerId, ...]] = {}
        for peer, request in requests.items():
            status = self.network.answers.pop(request)
            neighbors[peer] = ()
            if isinstance(status, NodeStatus):
                neighbors[peer] = next((s.neighbors for s in status.streams if s.stream == STREAM), ())
        return Overlay(neighbors, self.scenario.degree)

    def edges(self, overlay: Overlay) -> Edges:
        """The latency of each direction of each link of an overlay, in seconds."""
        return {
            (peer, other): self.network.latency(peer, other)
            for peer, others in overlay.neighbors.items()
            for other in others
        }

    def pair_mean(self) -> float:
        """Seconds between two nodes, on average over all ordered pairs of different ones."""
        places = Counter(self.network.region(peer) for peer in self.peers)
        between = self.network.table.between
        total = sum(
            between(origin, target) * count * (others - (origin == target))
            for origin, count in places.items()
            for target, others in places.items()
        )
        return total / (len(self.peers) * (len(self.peers) - 1))
