"""Nodes of a simulated world by name: each with a key, a store and several lives.

The base of the worlds of rooms and of places: the shipped machines over a network, and applications that give
commands and wait for answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, TypeVar

from linnet.core.effects import Deliver
from linnet.core.errors import LocalError
from linnet.core.ids import Contact, PeerId
from linnet.machine.commands import Declined
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.interface import AnyCommand, Handed, NodeMachine
from linnet.peer.peer import Peer
from linnet.sim.clock import START
from linnet.sim.links import LinkModel
from linnet.sim.network import Network
from linnet.sim.seeded_random import named_luck, seeded_identity
from linnet.sim.signature_cache import RememberingCardCheck, RememberingVerifier
from linnet.sim.wires import Durable
from linnet.store.memory import MemoryStore
from linnet.trace.records import TraceSink

R = TypeVar("R")


class SetupFailed(LocalError):
    """The world could not be set up as the scenario wants it."""


class NamedNodes:
    """A network, and its nodes by name. Worlds define the configuration and the applications."""

    hints: ClassVar[tuple[str, ...]]
    """The addresses at which all nodes can be dialled."""
    patience: ClassVar[float]
    """Virtual seconds in which a command must be answered."""
    step: ClassVar[float]
    """Virtual seconds between two checks for an answer."""

    def __init__(
        self,
        seed: int,
        links: LinkModel,
        trace: TraceSink | None,
        stores: Mapping[str, MemoryStore] | None = None,
    ) -> None:
        self.seed = seed
        self.network = Network(seed, links, trace)
        self.identities: dict[str, Identity] = {}
        self.stores: dict[str, MemoryStore] = dict(stores or {})
        """The store of each node; a node begins over one that is given."""
        self.names: dict[PeerId, str] = {}
        self._lives: dict[str, int] = {}
        self._verifier = RememberingVerifier()
        self._card_check = RememberingCardCheck()

    # Hooks of worlds.

    def configured(self, name: str) -> PeerConfig:
        """Return the configuration of a node, from its next start on."""
        raise NotImplementedError

    def deliver(self, peer: PeerId, effect: Deliver[Handed], now: float) -> None:
        """Handle the items that the application of a node is handed."""
        raise NotImplementedError

    # The nodes.

    def add(self, names: Iterable[str]) -> None:
        """Add nodes of these names, spread over all regions in turn."""
        regions = self.network.table.regions
        for number, name in enumerate(names, len(self.identities)):
            identity = self.identities[name] = self.identity(name)
            self.names[identity.peer] = name
            store = self.durable(name)
            region = regions[number % len(regions)]
            self.network.add(
                identity.peer, self.machine(name), region=region, deliver=self.deliver, store=store
            )

    def durable(self, name: str) -> Durable:
        """Return the object that makes a node's writes durable: its store."""
        return self.stores.setdefault(name, MemoryStore())

    def identity(self, name: str) -> Identity:
        """Return the identity of a node: each is a person of its own."""
        return seeded_identity(self.seed, name, START)

    def machine(self, name: str) -> NodeMachine:
        """Make a new machine over a node's store; worlds and tests override it."""
        life = self._lives[name] = self._lives.get(name, -1) + 1
        luck = named_luck(self.seed, f"{name}/{life}")
        identity, store = self.identities[name], self.stores[name]
        return Peer(self.configured(name), identity, store, luck, self._verifier, self._card_check)

    def peer(self, name: str) -> PeerId:
        """Return the key of a node."""
        return self.identities[name].peer

    def contact(self, name: str) -> Contact:
        """Return the key and addresses of a node."""
        return Contact(self.peer(name), self.hints)

    def is_online(self, name: str) -> bool:
        """Return whether a node is up."""
        return self.network.is_up(self.peer(name))

    # The applications.

    def ask(self, name: str, command: AnyCommand) -> int:
        """Give a node a command now; its reply will be in the network's `answers` under this number."""
        return self.network.ask(self.peer(name), command)

    def answered(self, request: int, limit: float | None = None) -> object:
        """Run until a command is answered, and return the answer; `SetupFailed` if that takes too long."""
        network = self.network
        seconds = self.patience if limit is None else limit
        end = network.elapsed + seconds
        while request not in network.answers:
            if network.elapsed >= end:
                raise SetupFailed(f"no answer within {seconds:.0f} s of virtual time, seed {self.seed}")
            network.run(min(end, network.elapsed + self.step))
        return network.answers.pop(request)

    def obtain(self, name: str, command: AnyCommand, kind: type[R]) -> R:
        """Give a command and run until it is answered; `SetupFailed` if the answer is of another kind."""
        result = self.answered(self.ask(name, command))
        return self.expected(f"{name} was asked for {type(command).__name__}", result, kind)

    def expected(self, what: str, result: object, kind: type[R]) -> R:
        """Return an answer if it is of this kind; `SetupFailed` otherwise."""
        if isinstance(result, kind):
            return result
        why = f"{result.reason}: {result.detail}" if isinstance(result, Declined) else repr(result)
        raise SetupFailed(f"{what}: {why}, seed {self.seed}")
