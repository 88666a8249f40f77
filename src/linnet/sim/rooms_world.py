"""A room in simulation: peers and relays, how they are made, meet in the room, go and come back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import count

from msgspec.structs import replace

from linnet.core.effects import Deliver
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.delivery.commands import Consumed
from linnet.event.event import Event
from linnet.peer.config import LinkConfig, PeerConfig
from linnet.peer.interface import Handed, Start
from linnet.rooms.commands import AddRelay, CreateRoom, JoinRoom, ReadRoom, SetMembership
from linnet.rooms.config import RelayChoice, RelayConfig, RelayPolicy, RoomsConfig
from linnet.rooms.content import Membership
from linnet.rooms.relay_choice import Chooser
from linnet.rooms.results import RoomMade, Sent
from linnet.sim.clock import START
from linnet.sim.links import LinkModel
from linnet.sim.luck import named_luck
from linnet.sim.named_nodes import NamedNodes, SetupFailed
from linnet.store.memory import MemoryStore
from linnet.trace.sink import TraceSink

HINTS = ("sim://node",)
FOUNDER = "peer0"
SETUP_LIMIT = 120.0
"""Virtual seconds in which one step of the set-up has to be answered."""

_READER = 1
_READER_NAME = "application"


class RoomsWorld(NamedNodes):
    """A network with the peers and relays of one room, which the first peer founds."""

    hints = HINTS
    patience = SETUP_LIMIT
    step = 0.05

    def __init__(
        self,
        seed: int,
        peers: int,
        relays: int,
        links: LinkModel,
        trace: TraceSink,
        rooms: RoomsConfig | None = None,
        stores: Mapping[str, MemoryStore] | None = None,
        keep: LinkConfig | None = None,
    ) -> None:
        super().__init__(seed, links, trace, stores)
        self._keep = keep or LinkConfig()
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
        for name in (*self.relays, *self.peers):
            config = RoomsConfig() if rooms is None else rooms
            self.rooms[name] = replace(config, relay_seed=_relay_seed(seed, name))
        self.add((*self.relays, *self.peers))

    def configured(self, name: str) -> PeerConfig:
        """Relays are open to all."""
        relay = RelayConfig(policy=RelayPolicy.OPEN) if name in self.relays else None
        return PeerConfig(listens=HINTS, rooms=self.rooms[name], relay=relay, links=self._keep)

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

    def deliver(self, peer: PeerId, effect: Deliver[Handed], now: float) -> None:
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
        self.network.restart(self.peer(name), self.machine(name))
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
