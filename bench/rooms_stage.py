"""A room to measure: members and a relay, set up over simulated links, with real signatures."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeVar

from linnet.core.ids import Contact, TopicId
from linnet.event.event import Verified
from linnet.event.signing import Verifier, verify_unit
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.interface import AnyCommand, Start
from linnet.peer.peer import Peer
from linnet.rooms.commands import AddRelay, CreateRoom, JoinRoom, MakeTicket, RoomMade, Sent, TicketMade
from linnet.rooms.config import RelayConfig, RelayPolicy, RoomsConfig
from linnet.rooms.event_positions import Arrival, Draft
from linnet.rooms.room import Room
from linnet.sim.links import LinkModel, constant_latency
from linnet.sim.network import Network
from linnet.sim.seeded_random import seeded_identity
from linnet.store.base import CommittingStore
from linnet.store.memory import MemoryStore
from linnet.trace.records import NullTrace

RELAY = "relay"
_GIB = 1024**3
R = TypeVar("R")


class Stage:
    """Nodes by name on one network; the one called ``relay`` is one."""

    def __init__(self, verifier: Verifier = verify_unit) -> None:
        self.network = Network(1, LinkModel(constant_latency(1.0)), NullTrace())
        self.identity: dict[str, Identity] = {}
        self.room = TopicId(b"")
        self._stores: dict[str, CommittingStore] = {}
        self._verifier = verifier

    def add(self, name: str, store: CommittingStore | None = None) -> None:
        """A node, started."""
        identity = self.identity[name] = seeded_identity(1, name, self.network.now)
        kept = self._stores[name] = MemoryStore() if store is None else store
        self.network.add(identity.peer, self._machine(name, identity, kept), store=kept)
        self.network.ask(identity.peer, Start())

    def _machine(self, name: str, identity: Identity, store: CommittingStore) -> Peer:
        limits = RelayConfig(policy=RelayPolicy.OPEN, room_bytes=_GIB, sender_bytes=_GIB)
        config = PeerConfig(
            listens=(f"tls://{name}:1",),
            rooms=RoomsConfig(relay_seed=1),
            relay=limits if name == RELAY else None,
        )
        return Peer(config, identity, store, Random(name), self._verifier)

    def contact(self, name: str) -> Contact:
        """Where a node is."""
        return Contact(self.identity[name].peer, (f"tls://{name}:1",))

    def get(self, name: str, command: AnyCommand, kind: type[R]) -> R:
        """Give a command and run until it is answered."""
        request = self.network.ask(self.identity[name].peer, command)
        self.until(lambda: request in self.network.answers)
        answer = self.network.answers.pop(request)
        if not isinstance(answer, kind):
            raise TypeError(f"{type(command).__name__}: {answer!r}")
        return answer

    def until(self, done: Callable[[], bool], limit: float = 3600.0) -> None:
        """Let virtual time pass until something is so."""
        end = self.network.elapsed + limit
        while not done():
            if self.network.elapsed >= end:
                raise TimeoutError("the stage never came to what was waited for")
            self.network.run(self.network.elapsed + 0.05)

    def found(self, founder: str, *members: str, relay: bool) -> None:
        """A room of these."""
        self.room = self.get(founder, CreateRoom("bench", newcomers=None), RoomMade).room
        if relay:
            self.get(founder, AddRelay(self.room, self.contact(RELAY)), Sent)
            self.network.run(self.network.elapsed + 2.0)
        for name in members:
            expires = int((self.network.now + 3600) * 1000)
            made = self.get(founder, MakeTicket(self.room, expires), TicketMade)
            self.get(name, JoinRoom(self.room, made.ticket, made.contacts), RoomMade)
        self.network.run(self.network.elapsed + 5.0)

    def room_at(self, name: str) -> Room:
        """The room as a member has it."""
        machine = self.network.machine(self.identity[name].peer)
        if not isinstance(machine, Peer):
            raise TypeError("a node of a stage is a peer")
        # A benchmark looks inside on purpose: to write events that are sent to nobody.
        known = machine.parts.rooms._registry.get(self.room)
        if known is None:
            raise TypeError("the node is not in the room")
        return known

    def back(self, name: str) -> None:
        """Start a node again that was stopped, over what it had."""
        identity = self.identity[name]
        machine = self._machine(name, identity, self._stores[name])
        self.network.restart(identity.peer, machine)
        self.network.ask(identity.peer, Start())
        self.network.run(self.network.elapsed)


def written(room: Room, count: int, body: bytes, now: float) -> list[Verified]:
    """So many messages of a member, made and signed, and sent to nobody."""
    author = room.author
    made: list[Verified] = []
    for number in range(count):
        verified = author.make(Draft("message", None, body), now + number / 1000)
        room.intake.take(Arrival(verified, None, 1, 0), now)
        room.note_event(verified.events[0])
        made.append(verified)
    room.out.clear()
    return made
