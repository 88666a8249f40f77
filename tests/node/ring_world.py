"""Real nodes without any tracker, killed and started again, each with applications that read its streams."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

from msgspec import Struct
from msgspec.structs import replace
from tests.node.crash_world import GUARD, STARTS, UNREACHED, at_once

from linnet.cli.moments import wall_clock
from linnet.cli.play.nodes import LiveNode
from linnet.core.ids import Contact
from linnet.delivery.config import DeliveryConfig
from linnet.node.addresses import contact_text, parse_hint
from linnet.node.client import ControlClient
from linnet.node.config import NodeConfig, StorageSection, TrackerlessSection
from linnet.node.config_reference import commented_file
from linnet.node.control_types import CaughtUpView, EventView, HeartbeatView, MissedView, SubscribedView
from linnet.node.home import open_home
from linnet.overlay.config import Overlay
from linnet.peer.config import LinkConfig

BOOTSTRAP = 2
"""Nodes whose addresses all others are given."""

BRISK = NodeConfig(
    trackerless=TrackerlessSection(
        period=1.0, seek_pause=1.0, release_delay=1.0, worth=1.0, request_timeout=2.0, intersect_pause=5.0
    ),
    delivery=DeliveryConfig(heads_period=1.0, gap_grace=0.3, gap_timeout=1.5, gap_backoff=0.5),
    links=LinkConfig(backoff_most=2.0),
)
"""Nodes that do not wait for long, since those that are gone come back soon here."""


class Heard(Struct, frozen=True):
    """An event that an application was handed, and in which of its lives."""

    life: int
    event: str
    chain: str
    """Whose event it is."""
    seq: int


class StreamReader(threading.Thread):
    """Reads one stream durably at one node, remembers what it is handed, and survives its node."""

    def __init__(self, node: LiveNode, stream: str, luck: Random) -> None:
        super().__init__(name=f"{node.name} reads {stream}", daemon=True)
        self._node = node
        self.stream = stream
        self._luck = luck
        self._ended = threading.Event()
        self._reading: ControlClient | None = None
        self.began = threading.Event()
        """Set once the subscription is durable for the first time."""
        self.lives = 0
        self.heard: list[Heard] = []
        self.settled: dict[str, int] = {}
        """Events of which the node has said that it is durable that they were handled, and in which life."""
        self.strange: list[str] = []
        """What came that is neither an event nor expected."""

    @property
    def owner(self) -> str:
        """The node that is read at."""
        return self._node.name

    def run(self) -> None:
        """Read, and read on whenever the node is back."""
        while not self._ended.wait(0.1):
            if self._node.is_up:
                with contextlib.suppress(*UNREACHED):
                    self._live()

    def end(self) -> None:
        """Stop reading."""
        self._ended.set()
        if self._reading is not None:
            self._reading.cut()
        self.join(10.0)

    def _live(self) -> None:
        home = self._node.home.path
        with ControlClient(home) as reading, ControlClient(home) as telling:
            self._reading = reading
            number, untold, due = 0, 0, self._luck.randint(1, 4)
            unsettled: list[str] = []
            for item in reading.subscribe(self.stream, since=0.0, name="application", manual=True):
                if self._ended.is_set():
                    return
                match item:
                    case SubscribedView(subscription=number):
                        self.lives += 1
                        self.began.set()
                        continue
                    case HeartbeatView():
                        continue
                    case EventView():
                        chain = f"{item.author}/{item.device}"
                        self.heard.append(Heard(self.lives, item.id, chain, item.seq or 0))
                        unsettled.append(item.id)
                    case CaughtUpView():
                        pass
                    case MissedView():
                        self.strange.append(f"missed {item.first} to {item.last}: {item.reason}")
                    case _:
                        self.strange.append(repr(item))
                untold += 1
                if untold >= due:
                    telling.consumed(number, untold)
                    self.settled.update(dict.fromkeys(unsettled, self.lives))
                    unsettled.clear()
                    untold, due = 0, self._luck.randint(1, 4)


class RingWorld:
    """Nodes on rings; nothing of it outlives the block, or the test."""

    def __init__(self, directory: Path, interests: Sequence[Sequence[str]], keepers: int, seed: int) -> None:
        """Nodes with the streams that each reads; the first few readers of a stream keep it too."""
        self._guard = subprocess.Popen([sys.executable, "-c", GUARD], stdin=subprocess.PIPE, process_group=0)
        self.interests = {f"node{number}": tuple(own) for number, own in enumerate(interests)}
        self.nodes = {name: self._node(directory / name, name) for name in self.interests}
        self._configure(keepers)
        self._starting = {name: threading.Lock() for name in self.nodes}
        self._starts = threading.Semaphore(STARTS)
        self.killed: dict[str, int] = dict.fromkeys(self.nodes, 0)
        self.readers = [
            StreamReader(self.nodes[name], stream, Random(f"{seed} {name} {stream}"))
            for name, own in self.interests.items()
            for stream in own
        ]

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

    def _node(self, path: Path, name: str) -> LiveNode:
        return LiveNode(name, path, relay=False, base=BRISK, group=self._guard.pid)

    def _configure(self, keepers: int) -> None:
        """No tracker; two nodes to begin with; some keep what they read."""
        readers: dict[str, list[str]] = {}
        for name, own in self.interests.items():
            for stream in own:
                readers.setdefault(stream, []).append(name)
        first: dict[str, str] = {}
        for name in list(self.nodes)[:BOOTSTRAP]:
            config = self._config(name)
            hints = tuple(map(parse_hint, config.node.listen))
            first[name] = contact_text(Contact(self.nodes[name].peer, hints))
        for name, node in self.nodes.items():
            config = self._config(name)
            others = tuple(address for other, address in first.items() if other != name)
            kept = tuple(StorageSection(each) for each, who in readers.items() if name in who[-keepers:])
            section = replace(config.node, overlay=Overlay.RING, bootstrap=others)
            node.home.config.write_text(commented_file(replace(config, node=section, storage=kept)))

    def _config(self, name: str) -> NodeConfig:
        return open_home(self.nodes[name].home.path, wall_clock()).config

    # What happens.

    def set_up(self) -> None:
        """Start everybody, a few at once, and let all applications subscribe."""
        self.start_all()
        for reader in self.readers:
            reader.start()
        for reader in self.readers:
            if not reader.began.wait(300.0):
                raise TimeoutError(f"{reader.name}: no subscription within five minutes")

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
        for reader in self.readers:
            reader.end()
        for node in self.nodes.values():
            node.kill()

    def last_words(self) -> list[str]:
        """What processes wrote to standard error."""
        words = ((name, node.home.path / "stderr.txt") for name, node in self.nodes.items())
        return [f"{name}: {path.read_text()[-2000:]}" for name, path in words if path.stat().st_size]
