"""The nodes of a stream scenario: how they are made, join, and settle into an overlay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import get_args

from msgspec import Struct

from linnet.core.effects import Deliver, Send
from linnet.core.hello import Hello
from linnet.core.ids import Contact, DeviceId, PeerId
from linnet.core.inputs import Received
from linnet.core.reasons import Reason
from linnet.delivery.config import DeliveryConfig
from linnet.event.event import Event
from linnet.overlay.config import DEFAULT_DEGREE, Control, MemberConfig, TrackerConfig
from linnet.overlay.messages import OverlayMessage
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.interface import Effect, Examine, Handed, Input, NodeMachine, NodeStatus, Start
from linnet.peer.peer import Peer
from linnet.sim.clock import START
from linnet.sim.links import LatencyTable, LinkModel, named_latency
from linnet.sim.network import Network
from linnet.sim.seeded_random import named_luck, seeded_identity
from linnet.sim.signature_cache import RememberingCardCheck, RememberingVerifier
from linnet.sim.streams.shortest_paths import Edges
from linnet.store.memory import MemoryStore
from linnet.streams.commands import Subscribe
from linnet.streams.config import StorageRule, StreamOptions
from linnet.trace.records import Kind, Record, TraceSink

STREAM = "simulation"
"""The name of the one stream of a scenario."""


class StreamScenario(Struct, frozen=True):
    """One tracker, the nodes of one stream, their events, and the problems of the network."""

    nodes: int = 32
    degree: int = DEFAULT_DEGREE
    control: Control = Control.COUNTER
    near: bool = False
    """Whether half of each node's links go to near nodes."""
    latency: str | LatencyTable = "aws"
    """A latency table, or its name; nodes are spread evenly over its regions.

    Names are ``aws``, ``constant:MS``, and the path of a file.
    """
    messages: int = 50
    """Events in all, each from a node that the seed draws."""
    seed: int = 1
    join: float = 0.0
    """Seconds between joins; 0: all at once."""
    gap: float = 1.0
    """Seconds between events: above the slowest path they do not overlap."""
    body_bytes: int = 64
    loss: float = 0.0
    """Probability that a single message on a link is lost."""
    jitter: float = 0.0
    """Seconds that a message may take longer."""
    bandwidth: float | None = None
    """Bytes a second in each direction of a link; None: no limit."""
    churn: float | None = None
    """Mean seconds that a node stays up while events are published; None: no node leaves."""
    churn_down: float = 5.0
    """Mean seconds that a node which left stays away."""
    storage: int = 0
    """Nodes that keep the stream for the others."""
    suppress: float = 0.0
    """Seconds that an event is held back, to skip neighbours that send it meanwhile."""
    tracker_region: str = "eu-central-1"
    """The region of the tracker, if the table has it; otherwise it is in the first one."""
    still: bool = False
    """Whether the tracker falls silent before the first event, so that the overlay stays as it is."""
    settle_limit: float = 120.0
    """Seconds after the last join at which events are published, whether the overlay is regular or not."""
    until: float | None = None
    """Virtual seconds at which the run ends; None: when all events have had time to arrive."""


class Meter:
    """Passes records on to a trace and counts what the report needs."""

    def __init__(self, trace: TraceSink) -> None:
        self._pass_on = trace.write
        self.close = trace.close
        self.changed_at: float | None = None
        """When an overlay changed last."""
        self.stale = 0
        """Messages that trackers and nodes rejected as stale."""
        self.began()

    def began(self) -> None:
        """Reset the counts, and count messages from now on."""
        self.sent = 0
        self.duplicates = 0
        self.returned = 0
        """Duplicates of events that the node itself had published."""
        self.hops: dict[int, int] = {}
        """First receipts by links crossed."""
        self.delays: list[float] = []
        """Seconds from publication to each first receipt."""
        self.links: list[int] = []
        """Links that each of these receipts crossed; 0 if unknown."""
        self.published: dict[bytes, float] = {}
        """When events were published."""
        self.published_by: dict[bytes, PeerId] = {}
        self._devices: dict[PeerId, DeviceId | None] = {}
        self.publishers: dict[PeerId, int] = {}
        """Publishers, with the number of their events."""
        self.delivered: dict[bytes, dict[PeerId, None]] = {}
        """Events, with the nodes whose application has them."""

    def write(self, node: PeerId, record: Record, now: float) -> None:
        """Handle a record, see `TraceSink.write`; the frequent kinds come first."""
        self._pass_on(node, record, now)
        kind = record.kind
        if kind is Kind.SENT:
            self.sent += record.events
        elif kind is Kind.DUPLICATE:
            self.duplicates += record.events
            if node in self._devices and self._devices[node] == record.device:
                self.returned += record.events
        elif kind is Kind.RECEIVED:
            self._received(record, now)
        elif kind is Kind.OVERLAY:
            self.changed_at = now
        elif kind is Kind.PUBLISHED and record.event is not None:
            self.published[record.event] = now
            self.published_by[record.event] = node
            self._devices[node] = record.device
            self.publishers[node] = self.publishers.get(node, 0) + record.events
        elif kind is Kind.REJECTED and record.reason is Reason.STALE:
            self.stale += 1

    def _received(self, record: Record, now: float) -> None:
        if record.hops is not None:
            self.hops[record.hops] = self.hops.get(record.hops, 0) + 1
        if record.event is not None:
            published_at = self.published.get(record.event)
            if published_at is not None:
                self.delays.append(now - published_at)
                self.links.append(record.hops or 0)

    def deliver(self, node: PeerId, effect: Deliver[Handed], now: float) -> None:
        """Remember the events that an application is handed."""
        for item in effect.items:
            if isinstance(item, Event):
                self.delivered.setdefault(item.id, {})[node] = None

    def reached(self) -> int:
        """Return the number of pairs of an event and a node other than its publisher whose application has
        it."""
        publishers = self.published_by
        return sum(len(nodes) - (publishers.get(event) in nodes) for event, nodes in self.delivered.items())


HINTS = ("sim://node",)
FIRST_JOIN = 1.0
"""Virtual second of the first join; the tracker starts before."""

CALM = 5.0
"""Seconds without a change after which a regular overlay counts as settled."""

STEP = 1.0
"""Seconds between checks for that."""

_SUBSCRIPTION = 1
_OVERLAY_MESSAGES = frozenset(get_args(OverlayMessage))


class Overlay(Struct, frozen=True):
    """The neighbours of each node, as the nodes themselves report them."""

    neighbors: dict[PeerId, tuple[PeerId, ...]]
    degree: int
    """The requested degree."""

    def degrees(self) -> Counter[int]:
        """Return how many nodes have each degree."""
        return Counter(map(len, self.neighbors.values()))

    def is_regular(self) -> bool:
        """Return whether each node has the requested degree; one link end may be left over if the sum is
        odd."""
        nodes = len(self.neighbors)
        wanted = min(self.degree, nodes - 1)
        degrees = self.degrees()
        spare = nodes * wanted % 2
        return degrees[wanted] == nodes or bool(
            spare and degrees[wanted] == nodes - 1 and degrees[wanted - 1] == 1
        )


class Counted:
    """A tracker with a count of its control messages."""

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
        tracker = self._identity("tracker")
        self._tracker = Contact(tracker.peer, HINTS)
        region = scenario.tracker_region
        self._counted = Counted(self._peer(tracker))
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
        identity = self._identity(f"node {number}")
        machine = self._peer(identity)
        store = self._stores[identity.peer]
        self.network.add(identity.peer, machine, region=region, deliver=self.meter.deliver, store=store)
        return identity.peer

    def _identity(self, name: str) -> Identity:
        identity = seeded_identity(self.scenario.seed, name, START)
        self._identities[identity.peer] = identity
        self._stores[identity.peer] = MemoryStore()
        return identity

    def _peer(self, identity: Identity) -> Peer:
        scenario, name = self.scenario, identity.card.label
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
            # The thesis has no lazy peers: they would change what is compared with it.
            delivery=DeliveryConfig(suppress=scenario.suppress, lazy_peers=0),
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
        """Silence the tracker, and let its last instructions be carried out: the overlay stays as it is
        then."""
        self.network.crash(self._tracker.peer, silent=True)
        self.network.run(self.network.elapsed + CALM)

    def revive(self, peer: PeerId, since: float | None) -> NodeMachine:
        """Return a new machine for a node that comes back, with its keys and its store."""
        self._start(peer, self.network.elapsed, since)
        return self._peer(self._identities[peer])

    def _start(self, peer: PeerId, at: float, since: float | None) -> None:
        self.network.ask(peer, Start(), at=at)
        self.network.ask(peer, Subscribe(_SUBSCRIPTION, STREAM, since), at=at)

    def settle(self, tell: Callable[[float], None]) -> bool:
        """Run until the overlay is regular and calm, or until the scenario's limit; return whether it is
        regular."""
        network = self.network
        joined = network.elapsed
        limit = joined + self.scenario.settle_limit
        until = joined
        # Steps by the requested time, not by the clock, which is rounded and may never reach the limit.
        while until < limit:
            until = min(limit, network.elapsed + STEP)
            network.run(until)
            tell((network.elapsed - joined) / self.scenario.settle_limit)
            changed = max(joined, self.converged_at or 0.0)
            if network.elapsed - changed >= CALM and self.overlay().is_regular():
                return True
        return self.overlay().is_regular()

    def overlay(self) -> Overlay:
        """Return the present overlay; nodes that are down have no neighbours."""
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
        """Return the latency of each direction of each link of an overlay, in seconds."""
        return {
            (peer, other): self.network.latency(peer, other)
            for peer, others in overlay.neighbors.items()
            for other in others
        }

    def pair_mean(self) -> float:
        """Return the mean seconds between two nodes, over all ordered pairs of different ones."""
        places = Counter(self.network.region(peer) for peer in self.peers)
        between = self.network.table.between
        total = sum(
            between(origin, target) * count * (others - (origin == target))
            for origin, count in places.items()
            for target, others in places.items()
        )
        return total / (len(self.peers) * (len(self.peers) - 1))
