"""Real nodes of content that are killed and started again, each with an application that wants something."""

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
from msgspec.structs import replace
from tests.node.crash_world import GUARD, STARTS, UNREACHED, at_once, until

from linnet.cli.moments import wall_clock
from linnet.cli.play.nodes import LiveNode
from linnet.content.predicates import Predicate, read_predicate
from linnet.core.ids import Contact
from linnet.node.addresses import contact_text, parse_hint
from linnet.node.client import ControlClient
from linnet.node.config import NodeConfig
from linnet.node.config_reference import commented_file
from linnet.node.content_section import ContentSection
from linnet.node.content_types import MatchView
from linnet.node.control_types import HeartbeatView, SubscribedView
from linnet.node.home import open_home
from linnet.node.kademlia_section import KademliaSection
from linnet.peer.config import LinkConfig

BOOTSTRAP = 2
"""Nodes whose addresses all others are given."""
TABLE = KademliaSection(enabled=True, patience=2.0, rejoin=1.0, bucket_prefix=20, table_prefix=256)
BRISK = NodeConfig(
    kademlia=TABLE,
    content=ContentSection(
        enabled=True, resend=0.5, tries=5, refresh=10.0, lately=300.0, avoided=3.0, confirmed=10.0
    ),
    links=LinkConfig(backoff_most=2.0),
)
"""Nodes that do not wait for long, and keep what went by until those who are gone have come back."""
WANTED = (
    'stock/symbol="LINN"/price[95,)',
    "weather/rain[5,)",
    'weather/station="NORTH"*/wind(10,)',
    "quake/strength[4,)",
    "stock",
)
"""What applications want, as in examples/feeds.py."""


class Heard(Struct, frozen=True):
    """A match that an application was handed, and in which of its lives."""

    life: int
    number: int
    event: str
    attributes: str


class MatchReader(threading.Thread):
    """Reads one kept subscription at one node, remembers what it is handed, and survives its node."""

    def __init__(self, node: LiveNode, predicate: str, luck: Random) -> None:
        super().__init__(name=f"{node.name} wants {predicate}", daemon=True)
        self.node = node
        self.text = predicate
        self.predicate: Predicate = read_predicate(predicate)
        self._luck = luck
        self._ended = threading.Event()
        self._reading: ControlClient | None = None
        self.began = threading.Event()
        """Set once the subscription is kept."""
        self.lives = 0
        self.heard: list[Heard] = []
        self.settled: dict[str, int] = {}
        """Events of which the node has said that it is durable that they were handled, and in which life."""
        self.strange: list[str] = []
        """What came that is no match and was not expected."""

    def run(self) -> None:
        """Read, and read on whenever the node is back."""
        while not self._ended.wait(0.1):
            if self.node.is_up:
                with contextlib.suppress(*UNREACHED):
                    self._live()

    def end(self) -> None:
        """Stop reading."""
        self._ended.set()
        if self._reading is not None:
            self._reading.cut()
        self.join(10.0)

    def _live(self) -> None:
        home = self.node.home.path
        with ControlClient(home) as reading, ControlClient(home) as telling:
            self._reading = reading
            number, due = 0, self._luck.randint(1, 4)
            unsettled: list[str] = []
            for item in reading.subscribe_content(self.text, "application", manual=True):
                if self._ended.is_set():
                    return
                match item:
                    case SubscribedView(subscription=number):
                        self.lives += 1
                        self.began.set()
                    case MatchView():
                        self.heard.append(Heard(self.lives, item.number, item.event, item.attributes))
                        unsettled.append(item.event)
                    case HeartbeatView():
                        pass
                    case _:
                        self.strange.append(repr(item))
                if len(unsettled) >= due:
                    telling.consumed(number, len(unsettled))
                    self.settled.update(dict.fromkeys(unsettled, self.lives))
                    unsettled.clear()
                    due = self._luck.randint(1, 4)


class ContentCrashWorld:
    """Nodes of content; nothing of it outlives the block, or the test."""

    def __init__(self, directory: Path, nodes: int, seed: int) -> None:
        self._guard = subprocess.Popen([sys.executable, "-c", GUARD], stdin=subprocess.PIPE, process_group=0)
        self.nodes = {
            name: LiveNode(name, directory / name, relay=False, base=BRISK, group=self._guard.pid)
            for name in (f"node{number}" for number in range(nodes))
        }
        self._configure()
        self._starting = {name: threading.Lock() for name in self.nodes}
        self._starts = threading.Semaphore(STARTS)
        self.killed: dict[str, int] = dict.fromkeys(self.nodes, 0)
        self.readers = {
            name: MatchReader(node, WANTED[place % len(WANTED)], Random(f"{seed} {name}"))
            for place, (name, node) in enumerate(self.nodes.items())
        }

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

    def _configure(self) -> None:
        first: dict[str, str] = {}
        configs = {name: open_home(node.home.path, wall_clock()).config for name, node in self.nodes.items()}
        for name in list(self.nodes)[:BOOTSTRAP]:
            hints = tuple(map(parse_hint, configs[name].node.listen))
            first[name] = contact_text(Contact(self.nodes[name].peer, hints))
        for name, node in self.nodes.items():
            others = tuple(address for other, address in first.items() if other != name)
            changed = replace(configs[name], kademlia=replace(TABLE, bootstrap=others))
            node.home.config.write_text(commented_file(changed))

    def set_up(self) -> None:
        """Start everybody, a few at once, and let all applications subscribe."""
        self.start_all()
        for reader in self.readers.values():
            reader.start()
        for reader in self.readers.values():
            if not reader.began.wait(300.0):
                raise TimeoutError(f"{reader.name}: no subscription within five minutes")
        if not until(self.is_settled, 120.0):
            raise TimeoutError("subscriptions did not stand within two minutes")

    def is_settled(self) -> bool:
        """Whether all subscriptions stand, as far as nodes know, and no attribute has two rendezvous."""
        told = [node.control.content() for node in self.nodes.values()]
        held = [attribute for each in told for attribute in each.rendezvous]
        return all(each.settled for each in told) and len(held) == len({*held})

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
        for reader in self.readers.values():
            reader.end()
        for node in self.nodes.values():
            node.kill()

    def last_words(self) -> list[str]:
        """What processes wrote to standard error."""
        words = ((name, node.home.path / "stderr.txt") for name, node in self.nodes.items())
        return [f"{name}: {path.read_text()[-2000:]}" for name, path in words if path.stat().st_size]
