"""A simulated network with an edge: a tracker t0, peers p0…, proxies q0…, and mobiles m0… behind proxies."""

from __future__ import annotations

from random import Random

from msgspec.structs import replace

from linnet.core.effects import Deliver
from linnet.core.hello import Hello
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import LinkUp, Received
from linnet.core.messages import Message
from linnet.delivery.commands import Consumed
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.items import Ended, Missed
from linnet.edge.config import PresenceConfig
from linnet.edge.proxy_commands import EdgeStatus, ExamineEdge
from linnet.edge.proxy_config import EdgeConfig, ProxyConfig
from linnet.event.event import Event
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.interface import Command, Effect, Examine, Handed, Input, NodeStatus, Result, Start
from linnet.peer.messages import CODEC
from linnet.peer.peer import Peer
from linnet.sim.identities import seeded_identity
from linnet.sim.links import LinkModel, constant_latency
from linnet.sim.luck import SeededEntropy
from linnet.sim.network import Network
from linnet.sim.verifier import RememberingVerifier
from linnet.store.memory import MemoryStore
from linnet.streams.commands import Publish, Subscribe
from linnet.trace.records import Kind, Record

STREAM = "weather"
PATIENT = DeliveryConfig(gap_tries=30)


class Notes:
    """Every record with the node that made it."""

    def __init__(self) -> None:
        self.records: list[tuple[PeerId, Record]] = []

    def write(self, node: PeerId, record: Record, now: float) -> None:
        self.records.append((node, record))

    def close(self) -> None:
        pass


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


class Coast:
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
        self.notes = Notes()
        self.network = Network(
            seed, LinkModel(constant_latency(10.0), 0.0, loss), self.notes, commit_delay=commit_delay
        )
        self.seed = seed
        self.names = ("t0", *names)
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
        self._verifier = RememberingVerifier()
        self.identity: dict[str, Identity] = {
            name: seeded_identity(seed, name, self.network.now) for name in self.names
        }
        self._name_of = {identity.peer: name for name, identity in self.identity.items()}
        self.stores = {name: MemoryStore() for name in self.names}
        self.items: dict[tuple[str, int], list[Handed]] = {}
        self._lives: dict[str, int] = {}
        self._subscriptions = 0
        for name in self.names:
            self.network.add(
                self.peer(name),
                Watched(self, name),
                deliver=self._deliver,
                store=self.stores[name],
                dialable=name[0] != "m",
            )
            self.network.ask(self.peer(name), Start())

    def peer(self, name: str) -> PeerId:
        return self.identity[name].peer

    def name(self, peer: PeerId) -> str:
        return self._name_of.get(peer, "?")

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

    def _deliver(self, peer: PeerId, effect: Deliver[Handed], now: float) -> None:
        name = self._name_of[peer]
        self.items.setdefault((name, effect.subscription), []).extend(effect.items)
        if not any(isinstance(item, Ended) for item in effect.items):
            self.network.ask(peer, Consumed(effect.subscription, len(effect.items)))

    # What is done.

    def run(self, seconds: float) -> None:
        self.network.run(self.network.elapsed + seconds)

    def ask(self, name: str, command: Command, wait: float = 1.0) -> Result:
        request = self.network.ask(self.peer(name), command)
        self.run(wait)
        return self.network.answers[request]

    def subscribe(self, node: str, /, stream: str = STREAM, wait: float = 0.0, **options: object) -> int:
        self._subscriptions += 1
        command = Subscribe(self._subscriptions, stream, **options)  # type: ignore[arg-type]
        self.network.ask(self.peer(node), command)
        self.items.setdefault((node, self._subscriptions), [])
        self.run(wait)
        return self._subscriptions

    def publish(self, name: str, *bodies: str, stream: str = STREAM, wait: float = 1.0) -> Result:
        return self.ask(name, Publish(stream, tuple(body.encode() for body in bodies)), wait)

    def crash(self, *names: str, silent: bool = False) -> None:
        for name in names:
            self.network.crash(self.peer(name), silent=silent)

    def restart(self, *names: str) -> None:
        for name in names:
            self.network.restart(self.peer(name), Watched(self, name))
            self.network.ask(self.peer(name), Start())

    # What is seen.

    def bodies(self, name: str, subscription: int) -> list[str]:
        return [item.body.decode() for item in self.items[name, subscription] if isinstance(item, Event)]

    def missed(self, name: str, subscription: int) -> list[Missed]:
        return [item for item in self.items[name, subscription] if isinstance(item, Missed)]

    def edge(self, name: str) -> EdgeStatus:
        result = self.ask(name, ExamineEdge(), wait=0.01)
        assert isinstance(result, EdgeStatus)
        return result

    def status(self, name: str) -> NodeStatus:
        result = self.ask(name, Examine(), wait=0.01)
        assert isinstance(result, NodeStatus)
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
