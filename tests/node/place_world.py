"""A place whose host and guests are processes, killed and started again, each with one who listens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

from msgspec import Struct
from tests.node.killed_world import KilledWorld
from tests.node.lasting_reader import LastingReader

from linnet.api.places import AskToEnter, ListenToPlace, LostView, MessageView, OpenPlace
from linnet.cli.play.nodes import LiveNode
from linnet.core.errors import Refused
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.node.client import ControlClient
from linnet.node.config import NodeConfig
from linnet.peer.config import LinkConfig
from linnet.places.commands import Entered
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

    def __init__(self, node: LiveNode, place: TopicId, method: str | None, luck: Random) -> None:
        super().__init__(f"{node.name} listens", node, luck)
        methods = None if method is None else (method,)
        self._command = ListenToPlace(0, place, since=1, name="application", methods=methods)
        self.heard: list[Heard] = []
        self.lost: list[LostView] = []

    def _items(self, reading: ControlClient) -> Iterator[object]:
        return reading.lines(self._command, manual=True)

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
        self.place = TopicId(b"")
        self.address = ""

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
        made = self.host.control.ask(OpenPlace(policy, "crashes"))
        self.place, self.address = made.place.place, made.address.text
        self.listen(HOST, "_request")
        for name in self.guests[:first]:
            self.enter(name)

    def enter(self, name: str) -> None:
        """Let somebody in, and its application listen."""
        answer = self.nodes[name].control.ask(AskToEnter(self.address, patience=ENTRY_SECONDS))
        if not isinstance(answer, Entered):
            raise Refused(Reason.NOT_ALLOWED, f"{name} was turned away: {answer}")
        self.listen(name)

    def listen(self, name: str, method: str | None = None) -> None:
        """Have an application listen; returns when that is durable."""
        luck = Random(f"{self._seed} {name}")
        listener = self.listeners[name] = Listener(self.nodes[name], self.place, method, luck)
        self.let_read(listener)
        listener.await_subscription(ENTRY_SECONDS)
