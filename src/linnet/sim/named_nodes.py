"""Nodes of a simulated world, by their names: each with a key, a store and several lives.

What worlds of rooms and of places have in common: the shipped machines over a network, and applications
that give commands and wait for answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, TypeVar

from linnet.core.effects import Deliver
from linnet.core.errors import LocalError
from linnet.core.ids import Contact, PeerId
from linnet.delivery.commands import Declined
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.interface import Command, Handed, NodeMachine, Result
from linnet.peer.peer import Peer
from linnet.sim.clock import START
from linnet.sim.identities import seeded_identity
from linnet.sim.links import LinkModel
from linnet.sim.luck import named_luck
from linnet.sim.network import Network
from linnet.sim.verifier import RememberingCardCheck, RememberingVerifier
from linnet.store.memory import MemoryStore
from linnet.trace.sink import TraceSink

R = TypeVar("R")


class SetupFailed(LocalError):
    """The world could not be set up as the scenario says."""


class NamedNodes:
    """A network, and its nodes by name. Worlds say how each is configured, and what applications do."""

    hints: ClassVar[tuple[str, ...]]
    """Where all of them can be dialled."""
    patience: ClassVar[float]
    """Virtual seconds in which a command has to be answered."""
    step: ClassVar[float]
    """Virtual seconds between two looks for an answer."""

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
        """What each node keeps; it begins over one that is given."""
        self.names: dict[PeerId, str] = {}
        self._lives: dict[str, int] = {}
        self._verifier = RememberingVerifier()
        self._card_check = RememberingCardCheck()

    # What worlds say.

    def configured(self, name: str) -> PeerConfig:
        """How a node is configured, from its next start on."""
        raise NotImplementedError

    def deliver(self, peer: PeerId, effect: Deliver[Handed], now: float) -> None:
        """What the application of a node does with what it is handed."""
        raise NotImplementedError

    # The nodes.

    def add(self, names: Iterable[str]) -> None:
        """Nodes of these names, spread over all regions in turn."""
        regions = self.network.table.regions
        for number, name in enumerate(names, len(self.identities)):
            identity = self.identities[name] = self.identity(name)
            self.names[identity.peer] = name
            self.stores.setdefault(name, MemoryStore())
            self.network.add(
                identity.peer,
                self.machine(name),
                region=regions[number % len(regions)],
                deliver=self.deliver,
                store=self.stores[name],
            )

    def identity(self, name: str) -> Identity:
        """Who a node is: each a person of its own."""
        return seeded_identity(self.seed, name, START)

    def machine(self, name: str) -> NodeMachine:
        """A new machine over what a node keeps: where tests put in others."""
        life = self._lives[name] = self._lives.get(name, -1) + 1
        luck = named_luck(self.seed, f"{name}/{life}")
        identity, store = self.identities[name], self.stores[name]
        return Peer(self.configured(name), identity, store, luck, self._verifier, self._card_check)

    def peer(self, name: str) -> PeerId:
        """The key of a node."""
        return self.identities[name].peer

    def contact(self, name: str) -> Contact:
        """Where a node may be dialled."""
        return Contact(self.peer(name), self.hints)

    def is_online(self, name: str) -> bool:
        """Whether a node is up."""
        return self.network.is_up(self.peer(name))

    # The applications.

    def ask(self, name: str, command: Command) -> int:
        """Give a node a command now; its reply will be in the network's `answers` under this number."""
        return self.network.ask(self.peer(name), command)

    def answered(self, request: int, limit: float | None = None) -> Result:
        """Run until a command is answered; `SetupFailed` if that takes too long."""
        network = self.network
        seconds = self.patience if limit is None else limit
        end = network.elapsed + seconds
        while request not in network.answers:
            if network.elapsed >= end:
                raise SetupFailed(f"no answer within {seconds:.0f} s of virtual time, seed {self.seed}")
            network.run(min(end, network.elapsed + self.step))
        return network.answers.pop(request)

    def obtain(self, name: str, command: Command, kind: type[R]) -> R:
        """Give a command and run until it is answered as it should be; `SetupFailed` otherwise."""
        result = self.answered(self.ask(name, command))
        return self.expected(f"{name} was asked for {type(command).__name__}", result, kind)

    def expected(self, what: str, result: Result, kind: type[R]) -> R:
        """An answer as it should be; `SetupFailed` otherwise."""
        if isinstance(result, kind):
            return result
        why = f"{result.reason}: {result.detail}" if isinstance(result, Declined) else repr(result)
        raise SetupFailed(f"{what}: {why}, seed {self.seed}")
