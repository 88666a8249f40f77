"""A simulated network with an edge: a tracker t0, peers p0…, proxies q0…, and mobiles m0… behind proxies."""

from __future__ import annotations

from random import Random

from msgspec.structs import replace
from tests.streams.village import STREAM, NamedNodes

from linnet.core.effects import AfterCommit, Send
from linnet.core.hello import Hello
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import LinkUp, Received
from linnet.core.messages import Message
from linnet.delivery.config import DeliveryConfig
from linnet.edge.commands import EdgeStatus, ExamineEdge
from linnet.edge.config import EdgeConfig, PresenceConfig, ProxyConfig
from linnet.event.event import Event
from linnet.peer.config import PeerConfig
from linnet.peer.interface import Effect, Input, NodeMachine
from linnet.peer.messages import CODEC
from linnet.peer.peer import Peer
from linnet.sim.links import LinkModel, constant_latency
from linnet.sim.seeded_random import SeededEntropy
from linnet.store.memory import MemoryStore
from linnet.streams.commands import Publish
from linnet.trace.records import Kind, Record

PATIENT = DeliveryConfig(gap_tries=30)


class Watched:
    """A node machine as it is; whom it has links to and what it hears is noted."""

    def __init__(self, coast: Coast, name: str) -> None:
        self.machine = coast.machine(name)
        self._coast = coast
        self._name = name

    @property
    def hello(self) -> Hello:
        return self.machine.hello

    def handle(self, event: Input, now: float) -> list[Effect]:
        coast, name = self._coast, self._name
        if type(event) is LinkUp:
            coast.met.setdefault(name, set()).add(coast.name(event.peer))
        if type(event) is Received:
            size = len(CODEC.encode(event.message))
            coast.heard.append((now, coast.name(event.peer), name, event.message, size))
        return self.machine.handle(event, now)


class Hostile(Watched):
    """A proxy that does something else with what it says to mobiles."""

    def handle(self, event: Input, now: float) -> list[Effect]:
        return [turned for effect in super().handle(event, now) for turned in self._turned(effect, now)]

    def _turned(self, effect: Effect, now: float) -> list[Effect]:
        if isinstance(effect, AfterCommit):
            parts = [turned for each in effect.effects for turned in self._turned(each, now)]
            return [AfterCommit(tuple(parts))]  # type: ignore[arg-type] # as they were, or sent
        if isinstance(effect, Send) and self._coast.name(effect.peer).startswith("m"):
            return [Send(effect.peer, message) for message in self.twist(effect.peer, effect.message, now)]
        return [effect]

    def twist(self, peer: PeerId, message: Message, now: float) -> list[Message]:
        raise NotImplementedError


class Coast(NamedNodes):
    """Nodes by name; the first letter says what a node is."""

    def __init__(
        self,
        *names: str,
        seed: int = 1,
        loss: float = 0.0,
        commit_delay: float = 0.0,
        proxy: ProxyConfig | None = None,
        edge: EdgeConfig | None = None,
        behind: tuple[str, ...] = (),
        lan: bool = False,
    ) -> None:
        links = LinkModel(constant_latency(10.0), 0.0, loss)
        super().__init__(seed, ("t0", *names), links, commit_delay=commit_delay)
        self.proxy_config = proxy or ProxyConfig(open=True)
        self.edge_config = edge or EdgeConfig()
        self.behind = behind or tuple(name for name in names if name[0] == "q")
        """The proxies of mobiles that are made from now on."""
        self.lan = lan
        """Whether mobiles look at local networks."""
        self.met: dict[str, set[str]] = {}
        """Whom a node ever had a link to."""
        self.heard: list[tuple[float, str, str, Message, int]] = []
        """When, who said what to whom, and how many bytes that were."""
        self.stores = {name: MemoryStore() for name in self.names}
        self._lives: dict[str, int] = {}
        self.start(self.stores, [name for name in names if name[0] == "m"])

    def noted(self, name: str) -> NodeMachine:
        return Watched(self, name)

    def contact(self, name: str) -> Contact:
        return Contact(self.peer(name), (f"tls://{name}:1",))

    def machine(self, name: str) -> Peer:
        life = self._lives[name] = self._lives.get(name, -1) + 1
        luck = Random(f"{self.seed}/{name}/{life}")
        entropy = SeededEntropy(self.seed, f"{name}/{life}")
        identity, store = self.identity[name], self.stores[name]
        return Peer(self.config(name), identity, store, luck, self._verifier, entropy=entropy)

    def config(self, name: str) -> PeerConfig:
        if name[0] == "m":
            proxies = tuple(map(self.contact, self.behind))
            edge = replace(self.edge_config, proxies=proxies)
            return PeerConfig(delivery=PATIENT, edge=edge, lan=PresenceConfig() if self.lan else None)
        return PeerConfig(
            listens=(f"tls://{name}:1",),
            trackers=(self.contact("t0"),),
            is_tracker=name[0] == "t",
            delivery=PATIENT,
            proxy=self.proxy_config if name[0] == "q" else None,
        )

    def publish(self, name: str, *bodies: str, stream: str = STREAM, wait: float = 1.0) -> object:
        return self.ask(name, Publish(stream, tuple(body.encode() for body in bodies)), wait)

    def bodies(self, name: str, subscription: int) -> list[str]:
        return [item.body.decode() for item in self.items[name, subscription] if isinstance(item, Event)]

    def edge(self, name: str) -> EdgeStatus:
        result = self.ask(name, ExamineEdge(), wait=0.01)
        assert isinstance(result, EdgeStatus)
        return result

    def records(self, name: str, kind: Kind) -> list[Record]:
        peer = self.peer(name)
        return [record for node, record in self.notes.records if node == peer and record.kind is kind]

    def said(self, since: float, *names: str) -> list[tuple[str, str, str, int]]:
        """Who said what to whom since then, among these, with the bytes of it."""
        return [
            (origin, target, type(message).__name__, size)
            for at, origin, target, message, size in self.heard
            if at >= since and origin in names and target in names
        ]
