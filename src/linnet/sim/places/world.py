"""A simulated place: a host and guests, the shipped machines, one watcher at each."""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.effects import Deliver
from linnet.core.ids import PeerId, TopicId
from linnet.delivery.commands import Consumed
from linnet.peer.config import PeerConfig
from linnet.peer.interface import Handed, Start
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
from linnet.sim.links import LinkModel, named_latency
from linnet.sim.named_nodes import NamedNodes
from linnet.trace.records import TraceSink

HOST = "host"
HINTS = ("tls://sim:1",)
WATCHER = 1
BATCH = 32
"""Items after which an application acknowledges them: a small part of what it may be handed."""


class PlacesWorld(NamedNodes):
    """A world with one place, its host and its guests."""

    hints = HINTS
    patience = 60.0
    step = 0.25

    def __init__(
        self,
        guests: int,
        seed: int,
        links: LinkModel | None = None,
        config: PlacesConfig | None = None,
        trace: TraceSink | None = None,
    ) -> None:
        super().__init__(seed, links or LinkModel(named_latency("aws")), trace)
        self.guests = [f"guest{number}" for number in range(guests)]
        self.place = TopicId(b"")
        self.config = config or PlacesConfig()
        self.said: dict[str, dict[int, bytes]] = {}
        """By node, the bodies of completed messages."""
        self.knocked: list[Knocked] = []
        self.welcomes = False
        """Whether the host admits every guest that knocks."""
        self.requests: list[Said] = []
        self.asked: dict[tuple[bytes, int], bytes] = {}
        """The messages of guests to the host, by nym and request."""
        self.changed: dict[str, list[Changed]] = {}
        self.lost: dict[str, list[Lost]] = {}
        self.heads: dict[str, list[Said]] = {}
        """By node, the first item of each message to all guests."""
        self.taken_back: dict[str, list[TakenBack]] = {}
        self._open: dict[tuple[str, int], bytearray] = {}
        self._handed: dict[str, int] = {}
        """Items that each application was handed and has not acknowledged."""
        self.add((HOST, *self.guests))

    def configured(self, name: str) -> PeerConfig:
        """Return the configuration, the same for all nodes."""
        return PeerConfig(listens=HINTS, places=self.config)

    def found(self, policy: Policy = Policy.PUBLIC) -> None:
        """Start all nodes, and found the place."""
        for name in (HOST, *self.guests):
            self.ask(name, Start())
        self.network.run(1.0)
        self.place = self.obtain(HOST, HostPlace(policy=policy), PlaceIs).deed.place
        self.obtain(HOST, Announce(self.place, "_notice_place_open"), Announced)
        self.watch(HOST)

    def enter(self, name: str) -> None:
        """Let a guest enter and watch."""
        asked = EnterPlace(self.place, (self.contact(HOST),), patience=self.patience)
        self.obtain(name, asked, Entered)
        self.watch(name)

    def watch(self, name: str) -> None:
        """Watch the place from the beginning."""
        self.ask(name, WatchPlace(WATCHER, self.place, since=1, objects=""))

    def status(self, name: str) -> PlaceIs:
        """Return the state of the place at a node."""
        return self.obtain(name, ListPlaces(), PlacesAre).places[0]

    def statuses(self, names: Iterable[str]) -> list[PlaceIs]:
        """Return the state of the place at many nodes, asked at once."""
        requests = {name: self.ask(name, ListPlaces()) for name in names}
        return [
            self.expected(name, self.answered(each), PlacesAre).places[0] for name, each in requests.items()
        ]

    def crash(self, name: str) -> None:
        """Stop a machine; its committed writes stay."""
        self.network.crash(self.identities[name].peer)

    def restart(self, name: str) -> None:
        """Start a new machine over a node's store."""
        self._handed.pop(name, None)
        for key in [key for key in self._open if key[0] == name]:
            del self._open[key]
        self.network.restart(self.identities[name].peer, self.machine(name))
        self.ask(name, Start())
        self.watch(name)

    def deliver(self, peer: PeerId, effect: Deliver[Handed], now: float) -> None:
        """Assemble delivered messages, and acknowledge the items."""
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
        pending = self._handed[name] = self._handed.get(name, 0) + len(effect.items)
        if pending >= BATCH:
            self._handed[name] = 0
            self.network.ask(peer, Consumed(effect.subscription, pending))

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
