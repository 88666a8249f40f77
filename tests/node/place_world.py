"""A place whose host and guests are processes, killed and started again, each with one who listens."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

from msgspec import Struct
from tests.node.crash_world import GUARD, STARTS, UNREACHED, at_once

from linnet.cli.play.nodes import LiveNode
from linnet.node.client import ControlClient
from linnet.node.config import NodeConfig
from linnet.node.control_types import HeartbeatView, SubscribedView
from linnet.node.place_types import (
    EnterRequest,
    HostRequest,
    ListenQuery,
    LostView,
    MessageView,
    PlaceItemView,
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


class Listener(threading.Thread):
    """Listens to the place durably at one node, remembers what it is handed, and survives its node."""

    def __init__(self, node: LiveNode, place: str, methods: str | None, luck: Random) -> None:
        super().__init__(name=f"{node.name} listens", daemon=True)
        self._node = node
        self._place = place
        self._methods = methods
        self._luck = luck
        self._ended = threading.Event()
        self._reading: ControlClient | None = None
        self.began = threading.Event()
        self.lives = 0
        self.heard: list[Heard] = []
        self.settled: dict[tuple[str | None, int], int] = {}
        """Messages of which the node has said that it is durable that they were handled, and when."""
        self.lost: list[LostView] = []
        self.strange: list[str] = []

    @property
    def owner(self) -> str:
        """The node that is listened at."""
        return self._node.name

    def run(self) -> None:
        """Listen, and listen on whenever the node is back."""
        while not self._ended.wait(0.1):
            if self._node.is_up:
                with contextlib.suppress(*UNREACHED):
                    self._live()

    def end(self) -> None:
        """Stop listening."""
        self._ended.set()
        if self._reading is not None:
            self._reading.cut()
        self.join(10.0)

    def _live(self) -> None:
        home = self._node.home.path
        query = ListenQuery(since=1, name="application", methods=self._methods, ack="manual")
        with ControlClient(home) as reading, ControlClient(home) as telling:
            self._reading = reading
            number, due, unsettled = 0, self._luck.randint(1, 4), list[Heard | None]()
            for item in reading.listen(self._place, query):
                if self._ended.is_set():
                    return
                if isinstance(item, SubscribedView):
                    number = item.subscription
                    self.lives += 1
                    self.began.set()
                elif not isinstance(item, HeartbeatView):
                    unsettled.append(self._take(item))
                if len(unsettled) >= due:
                    telling.consumed(number, len(unsettled))
                    for each in unsettled:
                        if each is not None:
                            self.settled[each.nym, each.message] = each.life
                    unsettled, due = [], self._luck.randint(1, 4)

    def _take(self, item: PlaceItemView) -> Heard | None:
        if isinstance(item, MessageView):
            heard = Heard(self.lives, item.message, item.nym, item.text)
            self.heard.append(heard)
            return heard
        if isinstance(item, LostView):
            self.lost.append(item)
        else:
            self.strange.append(repr(item))
        return None


class PlaceWorld:
    """A host and its guests; nothing of it outlives the block, or the test."""

    def __init__(self, directory: Path, guests: int, seed: int, config: NodeConfig = BRISK) -> None:
        self._guard = subprocess.Popen([sys.executable, "-c", GUARD], stdin=subprocess.PIPE, process_group=0)
        self._seed = seed
        names = (HOST, *(f"guest{number}" for number in range(guests)))
        self.nodes = {
            name: LiveNode(name, directory / name, relay=False, base=config, group=self._guard.pid)
            for name in names
        }
        self._starting = {name: threading.Lock() for name in names}
        self._starts = threading.Semaphore(STARTS)
        self.killed: dict[str, int] = dict.fromkeys(names, 0)
        self.listeners: dict[str, Listener] = {}
        self.place = self.address = ""

    def __enter__(self) -> Self:
        return self

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
        listener.start()
        if not listener.began.wait(ENTRY_SECONDS):
            raise TimeoutError(f"{name} does not listen within a minute")

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
        for listener in self.listeners.values():
            listener.end()
        for node in self.nodes.values():
            node.kill()

    def last_words(self) -> list[str]:
        """What processes wrote to standard error."""
        words = ((name, node.home.path / "stderr.txt") for name, node in self.nodes.items())
        return [f"{name}: {path.read_text()[-2000:]}" for name, path in words if path.stat().st_size]
