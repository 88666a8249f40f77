"""Nodes that are processes, killed and started again, and the applications that read at them."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.node.lasting_reader import LastingReader

from linnet.cli.moments import wall_clock
from linnet.cli.play.nodes import LiveNode
from linnet.core.ids import Contact
from linnet.identity.addresses import contact_text, parse_hint
from linnet.node.config import NodeConfig
from linnet.node.config_reference import new_file
from linnet.node.home import open_home

STARTS = 3
"""Processes that start at once: a start is a second of work for one core."""

BOOTSTRAP = 2
"""Nodes whose addresses all others are given, where there is no tracker."""

GUARD = "import os, signal, sys; sys.stdin.buffer.read(); os.killpg(0, signal.SIGKILL)"
"""Ends its process group when its standard input ends: whatever becomes of the test, nothing outlives it."""


class GuardedWorld:
    """Nodes and their readers; nothing of it outlives the block, or the test."""

    def __init__(self) -> None:
        self._guard = subprocess.Popen([sys.executable, "-c", GUARD], stdin=subprocess.PIPE, process_group=0)
        self.nodes: dict[str, LiveNode] = {}
        self._reading: list[LastingReader] = []

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
    def group(self) -> int:
        """The process group that ends with this world."""
        return self._guard.pid

    def let_read(self, *readers: LastingReader) -> None:
        """Let these begin to read; they end with this world."""
        for reader in readers:
            self._reading.append(reader)
            reader.start()

    def halt(self) -> None:
        """Kill everybody, for good."""
        for reader in self._reading:
            reader.end()
        for node in self.nodes.values():
            node.kill()

    def last_words(self) -> list[str]:
        """What processes wrote to standard error."""
        words = ((name, node.home.path / "stderr.txt") for name, node in self.nodes.items())
        return [f"{name}: {path.read_text()[-2000:]}" for name, path in words if path.stat().st_size]


class KilledWorld(GuardedWorld):
    """A world whose nodes are killed at any time and started again."""

    def __init__(
        self, directory: Path, names: Iterable[str], config: NodeConfig, within: tuple[str, ...] = ()
    ) -> None:
        """Nodes of these names, all configured like this; those that are called so are relays.

        `within` as for `LiveNode`.
        """
        super().__init__()
        self.nodes = {
            name: LiveNode(directory / name, name.startswith("relay"), config, self.group, within)
            for name in names
        }
        self._starting = {name: threading.Lock() for name in self.nodes}
        self._starts = threading.Semaphore(STARTS)
        self.killed: dict[str, int] = dict.fromkeys(self.nodes, 0)
        """How often each node was killed."""

    def start_all(self) -> None:
        """Start whoever is down, a few at once."""
        at_once(lambda node: self.start(node.name), self.nodes.values())

    def start(self, name: str) -> None:
        """Start a node, unless it runs; `Failure` if it did not come up, killed or not."""
        with self._starting[name], self._starts:
            self.nodes[name].start()

    def kill(self, name: str) -> None:
        """SIGKILL, whatever the node does just now: also while it starts."""
        self.killed[name] += 1
        self.nodes[name].kill()


def at_once(act: Callable[[LiveNode], object], nodes: Iterable[LiveNode]) -> None:
    """Do something at all of these, a few at a time; the first failure is raised."""
    with ThreadPoolExecutor(STARTS) as pool:
        for done in [pool.submit(act, node) for node in nodes]:
            done.result()


def until(holds: Callable[[], bool], limit: float) -> bool:
    """Look again and again; whether it came to hold in time."""
    end = time.monotonic() + limit
    while not holds():
        if time.monotonic() >= end:
            return False
        time.sleep(0.25)
    return True


def configure(node: LiveNode, change: Callable[[NodeConfig], NodeConfig]) -> None:
    """Change the configuration of a node that has not started."""
    node.home.config.write_text(new_file(change(_config(node))))


def bootstraps(nodes: Mapping[str, LiveNode]) -> dict[str, tuple[str, ...]]:
    """For each of these the addresses of the first few others."""
    first = {
        name: contact_text(Contact(node.peer, tuple(map(parse_hint, _config(node).node.listen))))
        for name, node in islice(nodes.items(), BOOTSTRAP)
    }
    return {name: tuple(first[other] for other in first if other != name) for name in nodes}


def _config(node: LiveNode) -> NodeConfig:
    return open_home(node.home.path, wall_clock()).config
