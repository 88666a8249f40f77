"""A simulated place: a host and guests, the shipped machines, one watcher at each."""

from __future__ import annotations

from typing import TypeVar

from linnet.core.effects import Deliver
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.delivery.commands import Consumed, Declined
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.interface import Command, Handed, NodeMachine, Result, Start
from linnet.peer.peer import Peer
from linnet.places.commands import (
    Admit,
    Announce,
    Announced,
    Entered,
    EnterPlace,
    HostPlace,
    ListPlaces,
    PlaceIs,
    PlacesAre,
    WatchPlace,
)
from linnet.places.config import PlacesConfig
from linnet.places.deed import Policy
from linnet.places.items import Body, Changed, Knocked, Lost, Said, TakenBack
from linnet.sim.clock import START
from linnet.sim.identities import seeded_identity
from linnet.sim.links import LinkModel, named_latency
from linnet.sim.luck import named_luck
from linnet.sim.network import Network
from linnet.sim.rooms_world import SetupFailed
from linnet.sim.verifier import RememberingCardCheck, RememberingVerifier
from linnet.store.memory import MemoryStore
from linnet.trace.sink import TraceSink

HOST = "host"
HINTS = ("tls://sim:1",)
WATCHER = 1
_STEP = 0.25
R = TypeVar("R")


class PlacesWorld:
    """One place, its host and its guests."""

    def __init__(
        self,
        guests: int,
        seed: int,
        links: LinkModel | None = None,
        config: PlacesConfig | None = None,
        trace: TraceSink | None = None,
    ) -> None:
        self.seed = seed
        self.network = Network(seed, links or LinkModel(named_latency("aws")), trace)
        self.guests = [f"guest{number}" for number in range(guests)]
        self.place = TopicId(b"")
        self.config = config or PlacesConfig()
        self.identities: dict[str, Identity] = {}
        self.stores: dict[str, MemoryStore] = {}
        self.names: dict[PeerId, str] = {}
        self.said: dict[str, dict[int, bytes]] = {}
        """By node, what each message that ended said."""
        self.knocked: list[Knocked] = []
        self.welcomes = False
        """Whether the host admits whoever knocks."""
        self.requests: list[Said] = []
        self.asked: dict[tuple[bytes, int], bytes] = {}
        """What guests said to the host, by nym and request."""
        self.changed: dict[str, list[Changed]] = {}
        self.lost: dict[str, list[Lost]] = {}
        self.heads: dict[str, list[Said]] = {}
        """By node, how each message that was said to all began."""
        self.taken_back: dict[str, list[TakenBack]] = {}
        self._open: dict[tuple[str, int], bytearray] = {}
        self._lives: dict[str, int] = {}
        self._verifier = RememberingVerifier()
        self._card_check = RememberingCardCheck()
        for number, name in enumerate((HOST, *self.guests)):
            self._add(name, number)

    def _add(self, name: str, number: int) -> None:
        identity = self.identities[name] = self.identity(name)
        self.stores[name] = MemoryStore()
        self.names[identity.peer] = name
        regions = self.network.table.regions
        self.network.add(
            identity.peer,
            self.machine(name),
            region=regions[number % len(regions)],
            deliver=self._deliver,
            store=self.stores[name],
        )

    def identity(self, name: str) -> Identity:
        """Who a node is: each a person of its own."""
        return seeded_identity(self.seed, name, START)

    def configured(self, name: str) -> PeerConfig:
        """What a node is told."""
        return PeerConfig(listens=HINTS, places=self.config)

    def machine(self, name: str) -> NodeMachine:
        """A new machine over what a node keeps: where tests put in others."""
        life = self._lives[name] = self._lives.get(name, -1) + 1
        config = self.configured(name)
        luck = named_luck(self.seed, f"{name}/{life}")
        identity = self.identities[name]
        return Peer(config, identity, self.stores[name], luck, self._verifier, self._card_check)

    def contact(self, name: str) -> Contact:
        """Where a node may be dialled."""
        return Contact(self.identities[name].peer, HINTS)

    # The applications.

    def ask(self, name: str, command: Command) -> int:
        """Give a node a command; its answer will be among the network's."""
        return self.network.ask(self.identities[name].peer, command)

    def answered(self, request: int, limit: float = 60.0) -> Result:
        """Run until a command is answered; `SetupFailed` if that takes too long."""
        end = self.network.elapsed + limit
        while request not in self.network.answers:
            if self.network.elapsed >= end:
                raise SetupFailed(f"no answer within {limit:.0f} s of virtual time, seed {self.seed}")
            self.network.run(min(end, self.network.elapsed + _STEP))
        return self.network.answers.pop(request)

    def obtain(self, name: str, command: Command, kind: type[R]) -> R:
        """Give a command and run until it is answered as it should be; `SetupFailed` otherwise."""
        result = self.answered(self.ask(name, command))
        if isinstance(result, kind):
            return result
        why = f"{result.reason}: {result.detail}" if isinstance(result, Declined) else repr(result)
        raise SetupFailed(f"{name} was asked for {type(command).__name__}: {why}, seed {self.seed}")

    def found(self, policy: Policy = Policy.PUBLIC) -> None:
        """Start everybody, and found the place."""
        for name in (HOST, *self.guests):
            self.ask(name, Start())
        self.network.run(1.0)
        self.place = self.obtain(HOST, HostPlace(policy=policy), PlaceIs).deed.place
        self.obtain(HOST, Announce(self.place, "_notice_place_open"), Announced)
        self.watch(HOST)

    def enter(self, name: str) -> None:
        """Let a guest in, and watch."""
        self.obtain(name, EnterPlace(self.place, (self.contact(HOST),)), Entered)
        self.watch(name)

    def watch(self, name: str) -> None:
        """Watch from the beginning."""
        self.ask(name, WatchPlace(WATCHER, self.place, since=1))

    def status(self, name: str) -> PlaceIs:
        """How the place stands at a node."""
        return self.obtain(name, ListPlaces(), PlacesAre).places[0]

    def crash(self, name: str) -> None:
        """Stop a machine; what it has committed stays."""
        self.network.crash(self.identities[name].peer)

    def restart(self, name: str) -> None:
        """A new machine over what a node had kept."""
        for key in [key for key in self._open if key[0] == name]:
            del self._open[key]
        self.network.restart(self.identities[name].peer, self.machine(name))
        self.ask(name, Start())
        self.watch(name)

    def _deliver(self, peer: PeerId, effect: Deliver[Handed], now: float) -> None:
        name = self.names[peer]
        for item in effect.items:
            match item:
                case Said(_, _, nym) if nym is not None:
                    self.requests.append(item)
                case Body(_, message, nym, _, data) if nym is not None:
                    self.asked[nym, message] = data
                case Said(_, message):
                    self.heads.setdefault(name, []).append(item)
                    self._open[name, message] = bytearray()
                case Body(_, message, _, _, data, last):
                    body = self._open.setdefault((name, message), bytearray())
                    body += data
                    if last:
                        self.said.setdefault(name, {})[message] = bytes(self._open.pop((name, message)))
                case Knocked():
                    self.knocked.append(item)
                    if self.welcomes:
                        self.ask(name, Admit(self.place, item.nym))
                case Changed():
                    self.changed.setdefault(name, []).append(item)
                case _:
                    self._lose(name, item)
        self.network.ask(peer, Consumed(effect.subscription, len(effect.items)))

    def _lose(self, name: str, item: Handed) -> None:
        match item:
            case Lost():
                self.lost.setdefault(name, []).append(item)
            case TakenBack():
                self.taken_back.setdefault(name, []).append(item)
                for message in item.messages:
                    self.said.get(name, {}).pop(message, None)
            case _:
                pass
