"""A small simulated world in which a node is found at its present address only, and dials are counted."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TypeVar

from msgspec.structs import replace

from linnet.core.effects import Dial, Probe
from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.interface import AnyCommand, Effect, Examine, NodeStatus, Start
from linnet.peer.peer import Peer
from linnet.sim.links import LinkModel, constant_latency
from linnet.sim.nemesis.open_node import Disk
from linnet.sim.network import Network
from linnet.sim.seeded_random import seeded_identity
from linnet.sim.signature_cache import RememberingCardCheck, RememberingVerifier
from linnet.sim.wires import Host
from linnet.store.memory import MemoryStore
from linnet.trace.records import NullTrace, Record

R = TypeVar("R")


class Records(NullTrace):
    """Every record."""

    def __init__(self) -> None:
        self.rows: list[tuple[PeerId, Record]] = []

    def write(self, node: PeerId, record: Record, now: float) -> None:
        self.rows.append((node, record))


class Addressed(Network):
    """A network in which a dial needs the address that the peer has now."""

    def __init__(self, seed: int, links: LinkModel, trace: Records, commit_delay: float) -> None:
        super().__init__(seed, links, trace, commit_delay=commit_delay)
        self.address: dict[PeerId, str] = {}
        self.dials: list[tuple[float, PeerId, PeerId, tuple[str, ...]]] = []
        self.probes: list[tuple[float, PeerId, PeerId, tuple[str, ...]]] = []

    def _perform_rare(self, host: Host, effect: Effect, now: float) -> None:
        if isinstance(effect, Dial):
            self.dials.append((now, host.peer, effect.peer, effect.hints))
            is_there = self.address.get(effect.peer) in effect.hints and self.is_up(effect.peer)
            if not is_there and effect.peer not in host.lanes and effect.peer not in host.dialing:
                host.dialing[effect.peer] = now
                self._wires._fail_dial(host, effect.peer, Reason.CONNECTION_REFUSED, now + 0.02)
                return
        elif isinstance(effect, Probe):
            self.probes.append((now, host.peer, effect.peer, effect.hints))
        super()._perform_rare(host, effect, now)


class Moving:
    """Nodes by name; each life may be at another port."""

    def __init__(self, seed: int = 1, commit_delay: float = 0.0) -> None:
        self.seed = seed
        self.trace = Records()
        self.network = Addressed(seed, LinkModel(constant_latency(10.0)), self.trace, commit_delay)
        self.identity: dict[str, Identity] = {}
        self.stores: dict[str, MemoryStore] = {}
        self.disks: dict[str, Disk] = {}
        self.configs: dict[str, PeerConfig] = {}
        self._lives: dict[str, int] = {}
        self._verifier, self._card_check = RememberingVerifier(), RememberingCardCheck()

    def add(self, name: str, config: PeerConfig, port: int = 1) -> None:
        """A new node, which starts."""
        self.identity[name] = seeded_identity(self.seed, name, self.network.now)
        self.stores[name], self.configs[name] = MemoryStore(), config
        self.disks[name] = Disk(self.stores[name], partial(self.network.crash, self.peer(name)))
        machine = self._machine(name, port)
        self.network.add(self.peer(name), machine, store=self.disks[name])
        self.network.ask(self.peer(name), Start())

    def stop(self, *names: str) -> None:
        """Crash nodes. What they wrote is committed, as by every turn of a real loop, if there is room."""
        for name in names:
            self.disks[name].commit(lambda: None)
            self.network.crash(self.peer(name))

    def start(self, *names: str, port: int = 1) -> None:
        """Bring nodes back, at this port."""
        for name in names:
            self.network.restart(self.peer(name), self._machine(name, port))
            self.network.ask(self.peer(name), Start())

    def _machine(self, name: str, port: int) -> Peer:
        life = self._lives[name] = self._lives.get(name, -1) + 1
        address = f"tls://{name}:{port}"
        self.network.address[self.peer(name)] = address
        luck = Random(f"{self.seed}/{name}/{life}")
        config = replace(self.configs[name], listens=(address,))
        return Peer(config, self.identity[name], self.stores[name], luck, self._verifier, self._card_check)

    def peer(self, name: str) -> PeerId:
        return self.identity[name].peer

    def contact(self, name: str) -> Contact:
        """A node and where it is now."""
        return Contact(self.peer(name), (self.network.address[self.peer(name)],))

    def run(self, seconds: float) -> None:
        self.network.run(self.network.elapsed + seconds)

    def get(self, name: str, command: AnyCommand, kind: type[R], seconds: float = 30.0) -> R:
        request = self.network.ask(self.peer(name), command)
        end = self.network.elapsed + seconds
        while request not in self.network.answers and self.network.elapsed < end:
            self.run(0.05)
        result: object | None = self.network.answers.pop(request, None)
        assert isinstance(result, kind), result
        return result

    def status(self, name: str) -> NodeStatus:
        return self.get(name, Examine(), NodeStatus)

    def linked(self, name: str) -> set[str]:
        """Who has a link to a node."""
        peers = self.network.linked(self.peer(name))
        return {other for other in self.identity if self.peer(other) in peers}

    def dials(self, name: str, to: str, since: float = 0.0) -> list[float]:
        """When a node dialled another."""
        both = (self.peer(name), self.peer(to))
        return [at for at, *who, _ in self.network.dials if tuple(who) == both and at >= since]
