"""Real nodes of one room that are killed and started again, each with an application that reads it."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Hashable, Iterator
from pathlib import Path
from random import Random

import msgspec
from msgspec import Struct
from tests.node.killed_world import KilledWorld, at_once
from tests.node.lasting_reader import LastingReader

from linnet.api.items import CaughtUpView, EventView, InsertedView
from linnet.api.rooms import AskToJoin
from linnet.cli.play.nodes import LiveNode
from linnet.core.ids import TopicId
from linnet.identity.addresses import parse_contact
from linnet.identity.text import Sort, from_text
from linnet.node.client import ControlClient
from linnet.node.config import NodeConfig
from linnet.peer.config import LinkConfig
from linnet.rooms.commands import AddRelay, CreateRoom, ReadRoom, SetMembership
from linnet.rooms.config import RoomsConfig
from linnet.rooms.event_types import Membership
from linnet.sim.rooms.world import FOUNDER

HANDED = "handed.jsonl"
SUBSCRIPTION = "application"

BRISK = NodeConfig(
    rooms=RoomsConfig(
        receipt_delay=0.2, announce_delay=0.5, recovery_delay=0.3, relay_timeout=3.0, relay_retry=3.0
    ),
    links=LinkConfig(backoff_most=2.0),
)
"""Nodes that do not wait for long, since those that are gone come back soon here."""

_encode = msgspec.json.Encoder().encode


class Handed(Struct, frozen=True, tag="handed"):
    """An application was handed an event; written before it is acknowledged."""

    life: int
    """Counts the subscriptions of one application."""
    event: str
    unreadable: str | None = None


class Handled(Struct, frozen=True, tag="handled"):
    """The node has said that it is durable that so many events of this life were handled."""

    life: int
    events: int


class Strange(Struct, frozen=True, tag="strange"):
    """Something else came than events."""

    life: int
    what: str


Line = Handed | Handled | Strange
_decode = msgspec.json.Decoder(Line).decode


class Application(LastingReader):
    """Reads the room durably at one peer, and writes down what it is handed."""

    most = 6

    def __init__(self, node: LiveNode, room: TopicId, luck: Random) -> None:
        super().__init__(f"application of {node.name}", node, luck)
        self._room = room
        self._file = -1
        self._handled = Counter[int]()
        """Events by life."""
        self.handed = 0
        """Events so far, repeated ones too."""

    def run(self) -> None:
        """Read, and read on whenever the node is back."""
        with _appended(self.node.home.path / HANDED) as self._file:
            super().run()

    def _items(self, reading: ControlClient) -> Iterator[object]:
        return reading.lines(ReadRoom(0, self._room, 0.0, SUBSCRIPTION), manual=True)

    def _take(self, item: object) -> str | None:
        match item:
            case EventView():
                self._write(Handed(self.lives, item.id, item.unreadable))
                self.handed += 1
                return item.id
            case CaughtUpView() | InsertedView():
                pass
            case _:
                self._write(Strange(self.lives, repr(item)))
        return None

    def _settle(self, handled: list[Hashable]) -> None:
        self._handled[self.lives] += len(handled)
        self._write(Handled(self.lives, self._handled[self.lives]))

    def _write(self, line: Line) -> None:
        os.write(self._file, _encode(line) + b"\n")


def handed_lines(home: Path) -> Iterator[Line]:
    """What an application wrote."""
    path = home / HANDED
    return map(_decode, path.read_bytes().splitlines()) if path.exists() else iter(())


class CrashWorld(KilledWorld):
    """The peers and relays of one room."""

    def __init__(self, directory: Path, peers: int, relays: int, seed: int) -> None:
        names = (
            *(f"relay{number}" for number in range(relays)),
            *(f"peer{number}" for number in range(peers)),
        )
        super().__init__(directory, names, BRISK)
        self._seed = seed
        self.room = TopicId(b"")
        self.applications: dict[str, Application] = {}

    @property
    def relays(self) -> list[LiveNode]:
        """The relays, in their order."""
        return [node for name, node in self.nodes.items() if name.startswith("relay")]

    @property
    def peers(self) -> dict[str, LiveNode]:
        """The peers by their names."""
        return {name: node for name, node in self.nodes.items() if name.startswith("peer")}

    def set_up(self) -> None:
        """Start everybody, a few at once; found the room, name its relays, invite and join all peers."""
        self.start_all()
        founder = self.nodes[FOUNDER]
        self.room = founder.control.ask(CreateRoom("crashes")).room
        for relay in self.relays:
            founder.control.ask(AddRelay(self.room, parse_contact(relay.address)))
        guests = [node for node in self.peers.values() if node is not founder]
        for node in guests:
            founder.control.ask(SetMembership(self.room, node.author, Membership.INVITE))
        contacts = tuple(parse_contact(node.address) for node in (founder, *self.relays))
        request = AskToJoin(room=self.room, contacts=contacts)
        at_once(lambda node: node.control.ask(request), guests)
        self.applications = {
            name: Application(node, self.room, Random(f"{self._seed} {name}"))
            for name, node in self.peers.items()
        }
        self.let_read(*self.applications.values())


def event_id(text: str) -> bytes:
    """The id in its text form."""
    return from_text(Sort.EVENT, text)


@contextlib.contextmanager
def _appended(path: Path) -> Iterator[int]:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        yield file
    finally:
        os.close(file)
