"""A small simulated network of real node machines, and what each of them was handed."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from random import Random
from typing import Protocol

from linnet.core.effects import Deliver
from linnet.core.hello import Hello
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import Received
from linnet.core.messages import Message
from linnet.core.stores import Store
from linnet.delivery.commands import Consumed
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.items import Ended, Missed
from linnet.event.event import Event
from linnet.overlay.config import MemberConfig, TrackerConfig
from linnet.peer.config import Identity, LinkConfig, PeerConfig
from linnet.peer.interface import (
    AnyCommand,
    Effect,
    Examine,
    Handed,
    Input,
    NodeMachine,
    NodeStatus,
    Start,
)
from linnet.peer.peer import Peer
from linnet.sim.links import LinkModel, constant_latency
from linnet.sim.network import Network
from linnet.sim.seeded_random import seeded_identity
from linnet.sim.signature_cache import RememberingVerifier
from linnet.sim.wires import Durable
from linnet.store.memory import MemoryStore
from linnet.streams.commands import Publish, Subscribe
from linnet.streams.config import StorageRule, StreamOptions
from linnet.trace.records import Record, TraceSink

STREAM = "weather"


class Stored(Durable, Store, Protocol):
    """A store of a simulated node."""

    def close(self) -> None: ...


class Notes:
    """Every record with the node that made it."""

    def __init__(self) -> None:
        self.records: list[tuple[PeerId, Record]] = []

    def write(self, node: PeerId, record: Record, now: float) -> None:
        self.records.append((node, record))

    def close(self) -> None:
        pass


class NamedNodes:
    """Simulated nodes by name, with what each of them was handed and what is asked of them."""

    def __init__(
        self,
        seed: int,
        names: Iterable[str],
        links: LinkModel,
        *,
        trace: TraceSink | None = None,
        commit_delay: float = 0.0,
    ) -> None:
        self.seed = seed
        self.names = [*names]
        self.notes = Notes()
        self.network = Network(seed, links, trace or self.notes, commit_delay=commit_delay)
        self._verifier = RememberingVerifier()
        self.identity: dict[str, Identity] = {
            name: seeded_identity(seed, name, self.network.now) for name in self.names
        }
        self._name_of = {identity.peer: name for name, identity in self.identity.items()}
        self.items: dict[tuple[str, int], list[Handed]] = {}
        self._autoconsume = True
        self._subscriptions = 0

    def start(self, stores: Mapping[str, Stored], dial_only: Container[str]) -> None:
        """Add every node, and start it."""
        for name in self.names:
            self.network.add(
                self.peer(name),
                self.noted(name),
                deliver=self._deliver,
                store=stores[name],
                dialable=name not in dial_only,
            )
            self.network.ask(self.peer(name), Start())

    def noted(self, name: str) -> NodeMachine:
        """A new life of a node, of which something is noted."""
        raise NotImplementedError

    def peer(self, name: str) -> PeerId:
        return self.identity[name].peer

    def name(self, peer: PeerId) -> str:
        return self._name_of.get(peer, "?")

    def _deliver(self, peer: PeerId, effect: Deliver[Handed], now: float) -> None:
        self.items.setdefault((self._name_of[peer], effect.subscription), []).extend(effect.items)
        if self._autoconsume and not any(isinstance(item, Ended) for item in effect.items):
            self.network.ask(peer, Consumed(effect.subscription, len(effect.items)))

    # Commands.

    def run(self, seconds: float) -> None:
        self.network.run(self.network.elapsed + seconds)

    def ask(self, name: str, command: AnyCommand, wait: float = 1.0) -> object:
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

    def crash(self, *names: str, silent: bool = False) -> None:
        for name in names:
            self.network.crash(self.peer(name), silent=silent)

    def restart(self, *names: str) -> None:
        for name in names:
            self.begin(name, self.noted(name))

    def begin(self, name: str, machine: NodeMachine) -> None:
        """Begin a new life of a node, with this machine."""
        self.network.restart(self.peer(name), machine)
        self.network.ask(self.peer(name), Start())

    # What was seen.

    def missed(self, name: str, subscription: int) -> list[Missed]:
        return [item for item in self.items[name, subscription] if isinstance(item, Missed)]

    def status(self, name: str) -> NodeStatus:
        result = self.ask(name, Examine(), wait=0.01)
        assert isinstance(result, NodeStatus)
        return result


class Eavesdropped:
    """A node machine as it is; what it is handed by others is noted."""

    def __init__(self, village: Village, name: str) -> None:
        self.machine = village.machine(name)
        self._heard = village.heard.setdefault(name, [])
        self._ahead = village.clocks.get(name, 0.0)
        self._village = village

    @property
    def hello(self) -> Hello:
        return self.machine.hello

    def handle(self, event: Input, now: float) -> list[Effect]:
        if type(event) is Received:
            self._heard.append((self._village.name(event.peer), event.message))
        return self.machine.handle(event, now + self._ahead)


class Village(NamedNodes):
    """Trackers t0…, storage nodes s0…, peers p0…, and x0… that are all of it, by name."""

    def __init__(
        self,
        seed: int = 1,
        *,
        trackers: int = 1,
        storage: int = 1,
        peers: int = 6,
        alone: int = 0,
        links: LinkModel | None = None,
        delivery: DeliveryConfig | None = None,
        rules: tuple[StorageRule, ...] = (StorageRule(STREAM),),
        options: dict[str, StreamOptions] | None = None,
        autoconsume: bool = True,
        commit_delay: float = 0.0,
        keep: LinkConfig | None = None,
        trace: TraceSink | None = None,
        clocks: dict[str, float] | None = None,
        dial_only: tuple[str, ...] = (),
        stores: dict[str, Stored] | None = None,
    ) -> None:
        kinds = {"t": trackers, "s": storage, "p": peers, "x": alone}
        names = [f"{kind}{number}" for kind, count in kinds.items() for number in range(count)]
        links = links or LinkModel(constant_latency(10.0))
        super().__init__(seed, names, links, trace=trace, commit_delay=commit_delay)
        self._dial_only = dial_only
        self.clocks = clocks or {}
        """Seconds by which the clocks of nodes are ahead."""
        self.heard: dict[str, list[tuple[str, Message]]] = {}
        """Every message that a node was handed, with who sent it."""
        self._keep = keep or LinkConfig()
        self._delivery = delivery or DeliveryConfig()
        self._options = options or {}
        self._rules = rules
        self._autoconsume = autoconsume
        self.stores: dict[str, Stored] = {name: MemoryStore() for name in self.names} | (stores or {})
        self.start(self.stores, dial_only)

    def noted(self, name: str) -> NodeMachine:
        return Eavesdropped(self, name)

    def add(self, name: str, machine: NodeMachine) -> Identity:
        """A node of another kind: it is given the identity of this name, and is not started."""
        self.identity[name] = identity = seeded_identity(self.seed, name, self.network.now)
        self._name_of[identity.peer] = name
        self.network.add(identity.peer, machine)
        return identity

    def machine(self, name: str) -> Peer:
        def hint(other: str) -> tuple[str, ...]:
            return (f"tls://{other}:1",)

        config = PeerConfig(
            listens=() if name in self._dial_only else hint(name),
            trackers=tuple(Contact(self.peer(n), hint(n)) for n in self.names if n[0] in "tx"),
            is_tracker=name[0] in "tx",
            storage=self._rules if name[0] in "sx" else (),
            streams=self._options,
            delivery=self._delivery,
            member=MemberConfig(),
            tracker=TrackerConfig(),
            links=self._keep,
        )
        rng = Random(f"{self.seed}/{name}")
        return Peer(config, self.identity[name], self.stores[name], rng, self._verifier)

    # Commands and what was seen.

    def publish(self, name: str, *bodies: bytes, stream: str = STREAM, wait: float = 1.0) -> object:
        return self.ask(name, Publish(stream, bodies), wait)

    def bodies(self, name: str, subscription: int) -> list[bytes]:
        return [item.body for item in self.items[name, subscription] if isinstance(item, Event)]

    def reasons(self, name: str) -> list[str]:
        return [str(r.reason) for node, r in self.notes.records if node == self.peer(name) and r.reason]
