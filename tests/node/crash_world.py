"""Real nodes of one room that are killed and started again, each with an application that reads it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from types import TracebackType

import msgspec
from msgspec import Struct

from linnet.cli.play.nodes import LiveNode, LiveWorld
from linnet.core.errors import LinnetError
from linnet.identity.text import Sort, from_text
from linnet.node.client import ControlClient
from linnet.node.config import NodeConfig
from linnet.node.control_types import EventView, HeartbeatView, SubscribedView
from linnet.node.room_types import CreateRoomRequest, JoinRoomRequest
from linnet.peer.config import LinkConfig
from linnet.rooms.config import RoomsConfig
from linnet.rooms.content import Membership
from linnet.sim.rooms_world import FOUNDER

HANDED = "handed.jsonl"
SUBSCRIPTION = "application"
STARTS = 3
"""Processes that start at once: a start is a second of work for one core."""

BRISK = NodeConfig(
    rooms=RoomsConfig(
        receipt_delay=0.2, announce_delay=0.5, recovery_delay=0.3, relay_timeout=3.0, relay_retry=3.0
    ),
    links=LinkConfig(backoff_most=2.0),
)
"""Nodes that do not wait for long, since those that are gone come back soon here."""

GUARD = "import os, signal, sys; sys.stdin.buffer.read(); os.killpg(0, signal.SIGKILL)"
"""Ends its process group when its standard input ends: whatever becomes of the test, nothing outlives it."""

UNREACHED = (LinnetError, RuntimeError)
"""What a call to a node can end with that is killed meanwhile; the last is a client closed under it."""

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


class Application(threading.Thread):
    """Reads the room durably at one peer, writes down what it is handed, and survives its node."""

    def __init__(self, node: LiveNode, room: str, luck: Random) -> None:
        super().__init__(name=f"application of {node.name}", daemon=True)
        self._node = node
        self._room = room
        self._luck = luck
        self._path = node.home.path / HANDED
        self._ended = threading.Event()
        self._reading: ControlClient | None = None
        self._life = 0
        self.handed = 0
        """Events so far, repeated ones too."""

    def run(self) -> None:
        """Read, and read on whenever the node is back."""
        with _appended(self._path) as file:
            while not self._ended.wait(0.1):
                if self._node.is_up:
                    with contextlib.suppress(*UNREACHED):
                        self._live(file)

    def end(self) -> None:
        """Stop reading."""
        self._ended.set()
        if self._reading is not None:
            self._reading.cut()
        self.join(10.0)

    def _live(self, file: int) -> None:
        with ControlClient(self._node.home.path) as reading, ControlClient(self._node.home.path) as telling:
            self._reading = reading
            number = events = untold = 0
            due = self._luck.randint(1, 6)
            for item in reading.read_room(self._room, 0.0, SUBSCRIPTION, manual=True):
                if self._ended.is_set():
                    return
                match item:
                    case SubscribedView(subscription=number):
                        self._life += 1
                        continue
                    case HeartbeatView():
                        continue
                    case EventView():
                        _write(file, Handed(self._life, item.id, item.unreadable))
                        events += 1
                        self.handed += 1
                    case _ if type(item).__name__ != "CaughtUpView":
                        _write(file, Strange(self._life, repr(item)))
                untold += 1
                if untold >= due:
                    telling.consumed(number, untold)
                    _write(file, Handled(self._life, events))
                    untold, due = 0, self._luck.randint(1, 6)


def handed_lines(home: Path) -> Iterator[Line]:
    """What an application wrote."""
    path = home / HANDED
    return map(_decode, path.read_bytes().splitlines()) if path.exists() else iter(())


class CrashWorld(LiveWorld):
    """A `LiveWorld` whose nodes are killed at any time; nothing of it outlives the block, or the test."""

    def __init__(self, directory: Path, peers: int, relays: int, seed: int) -> None:
        self._guard = subprocess.Popen([sys.executable, "-c", GUARD], stdin=subprocess.PIPE, process_group=0)
        super().__init__(directory, peers, relays, BRISK, self._guard.pid)
        self._seed = seed
        self._starting = {name: threading.Lock() for name in self.nodes}
        self._starts = threading.Semaphore(STARTS)
        self.applications: dict[str, Application] = {}
        self.killed: dict[str, int] = dict.fromkeys(self.nodes, 0)
        """How often each node was killed."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.halt()
        finally:
            if self._guard.stdin is not None:
                self._guard.stdin.close()
            self._guard.wait()

    @property
    def peers(self) -> dict[str, LiveNode]:
        """The peers by their names."""
        return {name: node for name, node in self.nodes.items() if name.startswith("peer")}

    def set_up(self) -> None:
        """Start everybody, a few at once; found the room, name its relays, invite and join all peers."""
        self.start_all()
        founder = self.nodes[FOUNDER]
        self.room = founder.control.create_room(CreateRoomRequest("crashes")).room
        for relay in self.relays:
            founder.control.add_relay(self.room, relay.address)
        guests = [node for node in self.peers.values() if node is not founder]
        for node in guests:
            founder.control.set_membership(self.room, node.person, Membership.INVITE)
        contacts = tuple(node.address for node in (founder, *self.relays))
        request = JoinRoomRequest(room=self.room, contacts=contacts)
        at_once(lambda node: node.control.join_room(request), guests)
        for name, node in self.peers.items():
            luck = Random(f"{self._seed} {name}")
            self.applications[name] = Application(node, self.room, luck)
            self.applications[name].start()

    def start_all(self) -> None:
        """Start whoever is down."""
        at_once(lambda node: self.start(node.name), self.nodes.values())

    def start(self, name: str) -> None:
        """Start a node, unless it runs; `Failure` if it did not come up, killed or not."""
        with self._starting[name], self._starts:
            self.nodes[name].start()

    def kill(self, name: str) -> None:
        """SIGKILL, whatever the node does just now: also while it starts."""
        self.killed[name] += 1
        self.nodes[name].kill()

    def halt(self) -> None:
        """Kill everybody, for good."""
        for application in self.applications.values():
            application.end()
        for node in self.nodes.values():
            node.kill()

    def last_words(self) -> list[str]:
        """What processes wrote to standard error."""
        words = ((name, (node.home.path / "stderr.txt")) for name, node in self.nodes.items())
        return [f"{name}: {path.read_text()[-2000:]}" for name, path in words if path.stat().st_size]


def at_once(act: Callable[[LiveNode], object], nodes: Iterable[LiveNode]) -> None:
    """Do something at all of these, a few at a time; the first failure is raised."""
    with ThreadPoolExecutor(STARTS) as pool:
        for done in [pool.submit(act, node) for node in nodes]:
            done.result()


def event_id(text: str) -> bytes:
    """The id in its text form."""
    return from_text(Sort.EVENT, text)


def until(holds: Callable[[], bool], limit: float) -> bool:
    """Look again and again; whether it came to hold in time."""
    end = time.monotonic() + limit
    while not holds():
        if time.monotonic() >= end:
            return False
        time.sleep(0.25)
    return True


@contextlib.contextmanager
def _appended(path: Path) -> Iterator[int]:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        yield file
    finally:
        os.close(file)


def _write(file: int, line: Line) -> None:
    os.write(file, _encode(line) + b"\n")
