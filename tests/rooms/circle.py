"""A small simulated circle of real node machines: people with a device each, and relays."""

from __future__ import annotations

from random import Random
from typing import TypeVar

from linnet.core.effects import Deliver
from linnet.core.ids import AuthorId, Contact, EventId, PeerId, TopicId
from linnet.delivery.commands import Consumed
from linnet.event.event import Event
from linnet.identity.cards import CARD_DAYS, issue_card
from linnet.identity.keys import SigningKey
from linnet.machine.commands import Declined
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.interface import AnyCommand, Handed, Start
from linnet.peer.peer import Peer
from linnet.rooms.commands import (
    AddRelay,
    CreateRoom,
    ExamineLedger,
    ExamineRooms,
    ExamineState,
    JoinRoom,
    LedgerIs,
    MakeTicket,
    ReadRoom,
    RoomMade,
    RoomsAre,
    RoomStatus,
    SendToRoom,
    Sent,
    StateIs,
    TicketMade,
)
from linnet.rooms.config import RelayConfig, RelayPolicy, RoomsConfig
from linnet.rooms.encryption.room_group import RoomGroup
from linnet.rooms.event_types import JoinRule, Newcomers
from linnet.rooms.part import Rooms
from linnet.rooms.room import Room
from linnet.sim.links import LinkModel, constant_latency
from linnet.sim.network import Network
from linnet.sim.seeded_random import SeededEntropy, seeded_identity
from linnet.sim.signature_cache import RememberingCardCheck, RememberingVerifier
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

R = TypeVar("R")


class Notes:
    """Every record with when and where it was made."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, PeerId, Record]] = []

    def write(self, node: PeerId, record: Record, now: float) -> None:
        self.rows.append((now, node, record))

    def close(self) -> None:
        pass


class Circle:
    """Peers and relays by name; a name that begins with ``r`` is a relay's."""

    kind: type[Peer] = Peer
    """What the machines are."""

    def __init__(
        self,
        *names: str,
        seed: int = 1,
        loss: float = 0.0,
        config: RoomsConfig | None = None,
        relay: RelayConfig | None = None,
    ) -> None:
        self.notes = Notes()
        self.network = Network(seed, LinkModel(constant_latency(10.0), 0.0, loss), self.notes)
        self.seed = seed
        self.config = config or RoomsConfig()
        self.relay_config = relay or RelayConfig(policy=RelayPolicy.OPEN)
        self.identity: dict[str, Identity] = {}
        self.stores: dict[str, MemoryStore] = {}
        self.items: dict[str, list[Handed]] = {name: [] for name in names}
        self.room = TopicId(b"")
        self._verifier = RememberingVerifier()
        self._card_check = RememberingCardCheck()
        self._lives: dict[str, int] = {}
        self._name_of: dict[PeerId, str] = {}
        for name in names:
            self.identity[name] = self._identity(name)
            self.stores[name] = self._store()
            self._name_of[self.peer(name)] = name
            self.network.add(
                self.peer(name), self._machine(name), deliver=self._deliver, store=self.stores[name]
            )
            self.network.ask(self.peer(name), Start())
        self.run(0.1)

    def _identity(self, name: str) -> Identity:
        return seeded_identity(self.seed, name, self.network.now)

    def _store(self) -> MemoryStore:
        return MemoryStore()

    def _config(self, name: str) -> PeerConfig:
        relay = self.relay_config if name.startswith("r") else None
        return PeerConfig(listens=(f"tls://{name}:1",), rooms=self.config, relay=relay)

    def _machine(self, name: str) -> Peer:
        life = self._lives[name] = self._lives.get(name, -1) + 1
        luck, checks = Random(f"{self.seed}/{name}/{life}"), (self._verifier, self._card_check)
        return self.kind(self._config(name), self.identity[name], self.stores[name], luck, *checks)

    def _deliver(self, peer: PeerId, effect: Deliver[Handed], now: float) -> None:
        self.items[self._name_of[peer]].extend(effect.items)
        self.network.ask(peer, Consumed(effect.subscription, len(effect.items)))

    # Names.

    def peer(self, name: str) -> PeerId:
        return self.identity[name].peer

    def person(self, name: str) -> AuthorId:
        return self.identity[name].author

    def contact(self, name: str) -> Contact:
        return Contact(self.peer(name), (f"tls://{name}:1",))

    def name(self, peer: PeerId) -> str:
        return self._name_of[peer]

    def rooms(self, name: str) -> Rooms:
        machine = self.network.machine(self.peer(name))
        assert isinstance(machine, Peer)
        return machine.parts.rooms

    def room_at(self, name: str) -> Room:
        """The room, as somebody has it who is in it."""
        room = self.rooms(name)._registry.get(self.room)
        assert room is not None
        return room

    def group(self, name: str) -> RoomGroup:
        """Those who hold the keys of an encrypted room, at one of them."""
        group = self.room_at(name).group
        assert group is not None
        return group

    def holders(self, name: str) -> list[str]:
        """The devices that hold keys, by one of them."""
        names = {identity.card.device: known for known, identity in self.identity.items()}
        return sorted(names[device.device] for device in self.group(name).members().values())

    # What people do.

    def run(self, seconds: float) -> None:
        self.network.run(self.network.elapsed + seconds)

    def ask(self, name: str, command: AnyCommand, seconds: float = 2.0) -> object | None:
        request = self.network.ask(self.peer(name), command)
        end = self.network.elapsed + seconds
        while request not in self.network.answers and self.network.elapsed < end:
            self.run(0.05)
        return self.network.answers.pop(request, None)

    def get(self, name: str, command: AnyCommand, kind: type[R], seconds: float = 30.0) -> R:
        result = self.ask(name, command, seconds)
        assert isinstance(result, kind), result
        return result

    def declined(self, name: str, command: AnyCommand, seconds: float = 30.0) -> Declined:
        return self.get(name, command, Declined, seconds)

    def found(
        self,
        founder: str,
        *others: str,
        rule: JoinRule = JoinRule.INVITE,
        read: bool = True,
        newcomers: Newcomers | None = None,
    ) -> None:
        """A room of these, all of whom are joined when this returns."""
        self.room = self.get(founder, CreateRoom("tea", rule=rule, newcomers=newcomers), RoomMade).room
        for name in others:
            if name.startswith("r"):
                self.get(founder, AddRelay(self.room, self.contact(name)), Sent)
                self.run(1.0)
            else:
                self.join(name, by=founder)
        if read:
            for name in (founder, *others):
                if not name.startswith("r"):
                    self.read(name)
        self.run(3.0)

    def ticket(self, by: str, lasts: float = 3600.0) -> TicketMade:
        expires = int((self.network.now + lasts) * 1000)
        return self.get(by, MakeTicket(self.room, expires), TicketMade)

    def join(self, name: str, by: str) -> None:
        made = self.ticket(by)
        self.get(name, JoinRoom(self.room, made.ticket, made.contacts), RoomMade)

    def read(self, name: str, state: bool = False) -> None:
        self.ask(name, ReadRoom(1, self.room, 0.0, "app", state=state))

    def say(self, name: str, *bodies: str) -> tuple[EventId, ...]:
        command = SendToRoom(self.room, tuple(body.encode() for body in bodies))
        return self.get(name, command, Sent).ids

    def settle(self, name: str) -> None:
        """A room acts on what was done to it by hand, outside of any input."""
        room, now = self.room_at(name), self.network.now
        room.settle(now)
        effects = room.out.take()
        self.network._perform(self.network._hosts[self.peer(name)], effects, now)  # type: ignore[arg-type]

    def update_keys(self, name: str) -> None:
        """Somebody sends a new seed, before its time."""
        room = self.room_at(name)
        assert room.maintenance is not None
        room.maintenance._update(self.network.now)
        self.settle(name)

    def offline(self, *names: str) -> None:
        for name in names:
            self.network.crash(self.peer(name))

    def online(self, *names: str) -> None:
        for name in names:
            self.network.restart(self.peer(name), self._machine(name))
            self.network.ask(self.peer(name), Start())
            if self.room and not name.startswith("r"):
                self.network.ask(self.peer(name), ReadRoom(1, self.room, 0.0, "app", state=False))
        self.run(0.05)

    # What they see.

    def heard(self, name: str) -> list[str]:
        """The bodies of the messages that the application of a peer was handed, in order."""
        return [item.body.decode() for item in self.items[name] if isinstance(item, Event)]

    def state(self, name: str) -> StateIs:
        return self.get(name, ExamineState(self.room), StateIs)

    def status(self, name: str) -> RoomStatus:
        rooms = self.get(name, ExamineRooms(), RoomsAre).rooms
        return next(status for status in rooms if status.room == self.room)

    def fates(self, name: str, event: EventId) -> dict[str, str]:
        """The ledger of a peer for an event, by name."""
        ledger = self.get(name, ExamineLedger(self.room, event), LedgerIs)
        names = {identity.author: known for known, identity in self.identity.items()}
        return {names[each.person]: each.fate.value for each in ledger.events[0].members}

    def records(self, name: str, kind: Kind) -> list[Record]:
        return [
            record for _, node, record in self.notes.rows if node == self.peer(name) and record.kind is kind
        ]

    def reasons(self, name: str, kind: Kind) -> list[str]:
        return [str(record.reason) for record in self.records(name, kind)]


def founded(
    *names: str,
    seed: int = 1,
    loss: float = 0.0,
    config: RoomsConfig | None = None,
    relay: RelayConfig | None = None,
    rule: JoinRule = JoinRule.INVITE,
    read: bool = True,
    newcomers: Newcomers | None = None,
) -> Circle:
    """A circle with a room that all of these are in; the first has founded it."""
    circle = Circle(*names, seed=seed, loss=loss, config=config, relay=relay)
    circle.found(*names, rule=rule, read=read, newcomers=newcomers)
    return circle


class Devices(Circle):
    """Names with a digit are devices of one person: ``ann`` and ``ann2``."""

    def person_key(self, name: str) -> SigningKey:
        return SigningKey.generate(SeededEntropy(self.seed, f"person/{name.rstrip('23')}"))

    def _identity(self, name: str) -> Identity:
        device = SigningKey.generate(SeededEntropy(self.seed, f"device/{name}"))
        first = int(self.network.now)
        card = issue_card(self.person_key(name), device.public, first, first + CARD_DAYS * 86_400, name)
        return Identity(device, card)
