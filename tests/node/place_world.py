"""A place whose host and guests are processes, killed and started again, each with one who listens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

from msgspec import Struct
from tests.node.killed_world import KilledWorld
from tests.node.lasting_reader import LastingReader

from linnet.cli.play.nodes import LiveNode
from linnet.node.client import ControlClient
from linnet.node.config import NodeConfig
from linnet.node.place_types import (
    EnterRequest,
    HostRequest,
    ListenQuery,
    LostView,
    MessageView,
)
from linnet.peer.config import LinkConfig
from linnet.places.config import PlacesConfig
from linnet.places.deed import Policy

HOST = "host"
ENTRY_SECONDS = 60.0
"""How long somebody stays at the door of a host that is killed now and then."""

BRISK = NodeConfig(
    places=PlacesConfig(
        fanout=2,
        upstreams=2,
        gap_delay=0.1,
        replay_timeout=0.5,
        entry_timeout=0.5,
        keepalive=1.0,
        receipt_delay=0.1,
        hash_every=8,
    ),
    links=LinkConfig(backoff_most=1.0),
)
"""Small trees of several levels, and nodes that do not wait for long."""


class Heard(Struct, frozen=True):
    """A message that an application was handed, and in which of its lives."""

    life: int
    message: int
    nym: str | None
    text: str | None


class Listener(LastingReader):
    """Listens to the place durably at one node, and remembers what it is handed."""

    def __init__(self, node: LiveNode, place: str, methods: str | None, luck: Random) -> None:
        super().__init__(f"{node.name} listens", node, luck)
        self._place = place
        self._query = ListenQuery(since=1, name="application", methods=methods, ack="manual")
        self.heard: list[Heard] = []
        self.lost: list[LostView] = []

    def _items(self, reading: ControlClient) -> Iterator[object]:
        return reading.listen(self._place, self._query)

    def _take(self, item: object) -> tuple[str | None, int] | None:
        if isinstance(item, MessageView):
            self.heard.append(Heard(self.lives, item.message, item.nym, item.text))
            return item.nym, item.message
        if isinstance(item, LostView):
            self.lost.append(item)
        else:
            self.strange.append(repr(item))
        return None


class PlaceWorld(KilledWorld):
    """A host and its guests."""

    def __init__(self, directory: Path, guests: int, seed: int, config: NodeConfig = BRISK) -> None:
        super().__init__(directory, (HOST, *(f"guest{number}" for number in range(guests))), config)
        self._seed = seed
        self.listeners: dict[str, Listener] = {}
        self.place = self.address = ""

    @property
    def host(self) -> LiveNode:
        """The host."""
        return self.nodes[HOST]

    @property
    def guests(self) -> list[str]:
        """The names of all others."""
        return [name for name in self.nodes if name != HOST]

    def set_up(self, first: int, policy: Policy = Policy.PUBLIC) -> None:
        """Start everybody, found the place, and let the first few guests in."""
        self.start_all()
        made = self.host.control.host_place(HostRequest(policy, "crashes"))
        self.place, self.address = made.place.place, made.address
        self.listen(HOST, "_request")
        for name in self.guests[:first]:
            self.enter(name)

    def enter(self, name: str) -> None:
        """Let somebody in, and its application listen."""
        self.nodes[name].control.enter_place(EnterRequest(self.address, patience=ENTRY_SECONDS))
        self.listen(name)

    def listen(self, name: str, methods: str | None = None) -> None:
        """Have an application listen; returns when that is durable."""
        luck = Random(f"{self._seed} {name}")
        listener = self.listeners[name] = Listener(self.nodes[name], self.place, methods, luck)
        self.let_read(listener)
        listener.await_subscription(ENTRY_SECONDS)
