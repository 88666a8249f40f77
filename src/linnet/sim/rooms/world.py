"""A room in simulation: its peers and relays, their set-up, absences and returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count

from msgspec.structs import replace

from linnet.core.effects import Deliver
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.delivery.commands import Consumed
from linnet.event.event import Event
from linnet.peer.config import LinkConfig, PeerConfig
from linnet.peer.interface import Handed, Start
from linnet.rooms.commands import AddRelay, CreateRoom, JoinRoom, ReadRoom, RoomMade, Sent, SetMembership
from linnet.rooms.config import RelayChoice, RelayConfig, RelayPolicy, RoomsConfig
from linnet.rooms.event_types import Membership
from linnet.rooms.relay_client.roster import RelaySelection
from linnet.sim.clock import START
from linnet.sim.links import LinkModel
from linnet.sim.named_nodes import NamedNodes, SetupFailed
from linnet.sim.seeded_random import named_luck
from linnet.store.memory import MemoryStore
from linnet.trace.records import TraceSink

HINTS = ("sim://node",)
FOUNDER = "peer0"
SETUP_LIMIT = 120.0
"""Virtual seconds in which one step of the set-up must be answered."""

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
        stores: Mapping[str, MemoryStore] | None = None,
        keep: LinkConfig | None = None,
    ) -> None:
        super().__init__(seed, links, trace, stores)
        self._keep = keep or LinkConfig()
        self.peers = [f"peer{number}" for number in range(peers)]
        self.relays = [f"relay{number}" for number in range(relays)]
        self.rooms: dict[str, RoomsConfig] = {}
        """The room configuration of each node, from its next start on."""
        self.room = TopicId(b"")
        self.seen: dict[str, dict[EventId, float]] = {}
        """The events that the application of each peer was handed, in order, with the first time."""
        self.repeated = 0
        """Events that an application was handed twice in one life of its node."""
        self.away = 0.0
        """Seconds for which peers were offline until they came back, added up."""
        self._went: dict[str, float] = {}
        self._handed: dict[str, set[EventId]] = {}
        for name in (*self.relays, *self.peers):
            self.rooms[name] = RoomsConfig(relay_seed=_relay_seed(seed, name))
        self.add((*self.relays, *self.peers))

    def configured(self, name: str) -> PeerConfig:
        """Return a configuration in which relays are open to all."""
        relay = RelayConfig(policy=RelayPolicy.OPEN) if name in self.relays else None
        return PeerConfig(listens=HINTS, rooms=self.rooms[name], relay=relay, links=self._keep)

    def set_up(self) -> None:
        """Start all nodes, found the room, name its relays, invite and join all peers."""
        for name in (*self.relays, *self.peers):
            self.ask(name, Start())
        self.network.run(1.0)
        self.room = self.obtain(FOUNDER, CreateRoom("play", newcomers=None), RoomMade).room
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
        """Remember delivered events, and acknowledge them."""
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
        """Cut a node's links and stop its machine; its committed writes stay. Does nothing if it is
        offline."""
        if self.is_online(name):
            self._went[name] = self.network.elapsed
            self.network.crash(self.peer(name))

    def online(self, name: str) -> None:
        """Start a new machine over a node's store. Does nothing if it is online."""
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


def seed_for(room: TopicId, relay: PeerId, relays: Iterable[PeerId]) -> int:
    """Return the first seed with which a member of a room chooses this one of its relays."""
    known = tuple(relays)
    if relay not in known:
        raise ValueError("a member chooses among the relays of its room")
    choosers = (RelaySelection(room, RelayChoice.RANDOM, seed) for seed in count())
    return next(chooser.seed for chooser in choosers if chooser.order(known, 0, {})[0] == relay)


def _relay_seed(seed: int, name: str) -> int:
    return named_luck(seed, f"relay of {name}").getrandbits(31)
