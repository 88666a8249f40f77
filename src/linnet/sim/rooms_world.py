"""A room in simulation: peers and relays, how they are made, meet in the room, go and come back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import TypeVar

from msgspec.structs import replace

from linnet.core.effects import Deliver
from linnet.core.errors import LocalError
from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.delivery.commands import Consumed, Declined
from linnet.event.event import Event
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.interface import Command, Handed, Result, Start
from linnet.peer.peer import Peer
from linnet.rooms.commands import AddRelay, CreateRoom, JoinRoom, ReadRoom, SetMembership
from linnet.rooms.config import RelayChoice, RelayConfig, RelayPolicy, RoomsConfig
from linnet.rooms.content import Membership
from linnet.rooms.relay_choice import Chooser
from linnet.rooms.results import RoomMade, Sent
from linnet.sim.clock import START
from linnet.sim.identities import seeded_identity
from linnet.sim.links import LinkModel
from linnet.sim.luck import named_luck
from linnet.sim.network import Network
from linnet.sim.verifier import RememberingCardCheck, RememberingVerifier
from linnet.store.memory import MemoryStore
from linnet.trace.sink import TraceSink

HINTS = ("sim://node",)
FOUNDER = "peer0"
SETUP_LIMIT = 120.0
"""Virtual seconds in which one step of the set-up has to be answered."""

_STEP = 0.05
_READER = 1
_READER_NAME = "application"

R = TypeVar("R")


class SetupFailed(LocalError):
    """The room could not be set up as the scenario says."""


class RoomsWorld:
    """A network with the peers and relays of one room, which the first peer founds."""

    def __init__(
        self,
        seed: int,
        peers: int,
        relays: int,
        links: LinkModel,
        trace: TraceSink,
        rooms: RoomsConfig | None = None,
        stores: Mapping[str, MemoryStore] | None = None,
    ) -> None:
        self.seed = seed
        self.network = Network(seed, links, trace)
        self.peers = [f"peer{number}" for number in range(peers)]
        self.relays = [f"relay{number}" for number in range(relays)]
        self.rooms: dict[str, RoomsConfig] = {}
        """How each node treats rooms, from its next start on."""
        self.room = TopicId(b"")
        self.seen: dict[str, dict[EventId, float]] = {}
        """What the application of each peer was handed, in order, and when first."""
        self.repeated = 0
        """Events that an application was handed twice in one life of its node."""
        self.away = 0.0
        """Seconds that peers were offline and came back from, all together."""
        self._went: dict[str, float] = {}
        self._handed: dict[str, set[EventId]] = {}
        self.identities: dict[str, Identity] = {}
        self.stores: dict[str, MemoryStore] = dict(stores or {})
        """What each node keeps; it begins over one that is given."""
        self.names: dict[PeerId, str] = {}
        self._lives: dict[str, int] = {}
        self._verifier = RememberingVerifier()
        self._card_check = RememberingCardCheck()
        for number, name in enumerate((*self.relays, *self.peers)):
            config = RoomsConfig() if rooms is None else rooms
            self.rooms[name] = replace(config, relay_seed=_relay_seed(seed, name))
            self._add(name, number)

    def _add(self, name: str, number: int) -> None:
        identity = seeded_identity(self.seed, name, START)
        self.identities[name] = identity
        self.stores.setdefault(name, MemoryStore())
        self.names[identity.peer] = name
        regions = self.network.table.regions
        self.network.add(
            identity.peer,
            self._machine(name),
            region=regions[number % len(regions)],
            deliver=self._deliver,
            store=self.stores[name],
        )

    def _machine(self, name: str) -> Peer:
        life = self._lives[name] = self._lives.get(name, -1) + 1
        relay = RelayConfig(policy=RelayPolicy.OPEN) if name in self.relays else None
        config = PeerConfig(listens=HINTS, rooms=self.rooms[name], relay=relay)
        luck = named_luck(self.seed, f"{name}/{life}")
        identity = self.identities[name]
        return Peer(config, identity, self.stores[name], luck, self._verifier, self._card_check)

    def peer(self, name: str) -> PeerId:
        """The key of a node."""
        return self.identities[name].peer

    def contact(self, name: str) -> Contact:
        """Where a node may be dialled."""
        return Contact(self.peer(name), HINTS)

    def is_online(self, name: str) -> bool:
        """Whether a node is up."""
        return self.network.is_up(self.peer(name))

    # The application's side.

    def ask(self, name: str, command: Command) -> int:
        """Give a node a command now; its reply will be in the network's `answers` under this number."""
        return self.network.ask(self.peer(name), command)

    def answered(self, request: int, limit: float = SETUP_LIMIT) -> Result:
        """Run until a command is answered; `SetupFailed` if that takes too long."""
        network = self.network
        end = network.elapsed + limit
        while request not in network.answers:
            if network.elapsed >= end:
                raise SetupFailed(f"no answer within {limit:.0f} s of virtual time, seed {self.seed}")
            network.run(min(end, network.elapsed + _STEP))
        return network.answers.pop(request)

    def obtain(self, name: str, command: Command, kind: type[R]) -> R:
        """Give a command and run until it is answered as it should be; `SetupFailed` otherwise."""
        result = self.answered(self.ask(name, command))
        if isinstance(result, kind):
            return result
        why = f"{result.reason}: {result.detail}" if isinstance(result, Declined) else repr(result)
        raise SetupFailed(f"{name} was asked for {type(command).__name__}: {why}, seed {self.seed}")

    def set_up(self) -> None:
        """Start everybody, found the room, name its relays, invite and join all peers."""
        for name in (*self.relays, *self.peers):
            self.ask(name, Start())
        self.network.run(1.0)
        self.room = self.obtain(FOUNDER, CreateRoom("play"), RoomMade).room
        for name in self.relays:
            self.obtain(FOUNDER, AddRelay(self.room, self.contact(name)), Sent)
        for name in self.peers[1:]:
            person = self.identities[name].author
            self.obtain(FOUNDER, SetMembership(self.room, person, Membership.INVITE), Sent)
        contacts = (self.contact(FOUNDER), *map(self.contact, self.relays))
        joins = {name: self.ask(name, JoinRoom(self.room, None, contacts)) for name in self.peers[1:]}
        for name, request in joins.items():
            result = self.answered(request)
            if not isinstance(result, RoomMade):
                raise SetupFailed(f"{name} did not join: {result!r}, seed {self.seed}")
        for name in self.peers:
            self._read(name)

    def _read(self, name: str) -> None:
        self.ask(name, ReadRoom(_READER, self.room, since=0.0, name=_READER_NAME))

    def _deliver(self, peer: PeerId, effect: Deliver[Handed], now: float) -> None:
        """What the application does: remember, and say that it has."""
        name = self.names[peer]
        seen, handed = self.seen.setdefault(name, {}), self._handed.setdefault(name, set())
        for item in effect.items:
            if isinstance(item, Event):
                seen.setdefault(item.id, now - START)
                self.repeated += item.id in handed
                handed.add(item.id)
        self.network.ask(peer, Consumed(effect.subscription, len(effect.items)))

    # Coming and going.

    def offline(self, name: str) -> None:
        """Cut a node's links and stop its machine; what it has committed stays. Again does nothing."""
        if self.is_online(name):
            self._went[name] = self.network.elapsed
            self.network.crash(self.peer(name))

    def online(self, name: str) -> None:
        """Start a new machine over what a node had kept. If it is online, this does nothing."""
        if self.is_online(name):
            return
        self.away += self.network.elapsed - self._went.pop(name)
        self._handed.pop(name, None)
        self.network.restart(self.peer(name), self._machine(name))
        self.ask(name, Start())
        if name in self.peers:
            self._read(name)

    def prefer(self, name: str, relay: str) -> None:
        """Let a peer choose this relay from its next start on, by a seed that draws it."""
        seed = seed_for(self.room, self.peer(relay), [self.peer(each) for each in self.relays])
        self.rooms[name] = replace(self.rooms[name], relay_choice=RelayChoice.RANDOM, relay_seed=seed)

    def at(self, seconds: float, act: Callable[[], None]) -> None:
        """Do something at a virtual second."""
        self.network.at(seconds, act)


def seed_for(room: TopicId, relay: PeerId, relays: Iterable[PeerId]) -> int:
    """The first seed that makes a member of a room choose this one of its relays."""
    known = tuple(relays)
    if relay not in known:
        raise ValueError("a member chooses among the relays of its room")
    choosers = (Chooser(room, RelayChoice.RANDOM, seed) for seed in count())
    return next(chooser.seed for chooser in choosers if chooser.order(known, 0, {})[0] == relay)


def _relay_seed(seed: int, name: str) -> int:
    return named_luck(seed, f"relay of {name}").getrandbits(31)
