"""Real nodes in network namespaces, on local networks that are joined by nothing but a node on both."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

from msgspec.structs import replace
from tests.edge.namespaces import Lab
from tests.node.crash_world import GUARD, at_once, until
from tests.node.ring_world import BRISK, StreamReader

from linnet.cli.moments import wall_clock
from linnet.cli.play.nodes import LiveNode
from linnet.identity.text import Sort, to_text
from linnet.node.config import LanSection
from linnet.node.config_reference import commented_file
from linnet.node.home import open_home
from linnet.overlay.config import Overlay
from linnet.peer.config import LinkConfig
from linnet.streams.names import topic_of

STREAM = "village"
TOPIC = to_text(Sort.TOPIC, topic_of(STREAM))
QUICK = replace(BRISK, links=LinkConfig(backoff_most=2.0, ping_period=2.0, ping_timeout=1.0))
"""Nodes that notice within seconds that a cable was pulled."""
LIMIT = 90.0
"""Seconds after which what a test waits for will not come."""


class LanWorld:
    """Nodes of several networks, each with an application that reads one stream."""

    def __init__(self, directory: Path, lab: Lab) -> None:
        self._guard = subprocess.Popen([sys.executable, "-c", GUARD], stdin=subprocess.PIPE, process_group=0)
        self._directory = directory
        self._lab = lab
        self.nodes: dict[str, LiveNode] = {}
        self.spaces: dict[str, str] = {}
        self.readers: dict[str, StreamReader] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for reader in self.readers.values():
                if reader.is_alive():
                    reader.end()
            for node in self.nodes.values():
                node.kill()
        finally:
            if self._guard.stdin is not None:
                self._guard.stdin.close()
            self._guard.wait()

    def add(self, name: str) -> str:
        """A node in a namespace of its own, which is returned; it has no address of any other."""
        space = self.spaces[name] = self._lab.space(name)
        within = ("ip", "netns", "exec", space)
        node = LiveNode(
            name, self._directory / name, relay=False, base=QUICK, group=self._guard.pid, within=within
        )
        config = open_home(node.home.path, wall_clock()).config
        section = replace(config.node, overlay=Overlay.RING)
        config = replace(config, node=section, lan=LanSection(enabled=True))
        node.home.config.write_text(commented_file(config))
        self.nodes[name] = node
        return space

    def start(self, networks: dict[str, int]) -> None:
        """Start all; the stream is allowed on the networks that each is on, of which there are so many."""
        at_once(LiveNode.start, self.nodes.values())
        for name, node in self.nodes.items():
            self.allow(node, networks.get(name, 1))
            reader = self.readers[name] = StreamReader(node, STREAM, Random(name))
            reader.start()

    def allow(self, node: LiveNode, count: int) -> None:
        """Let the stream be spoken of on every network that a node is on."""
        wait_for(lambda: sum(each.here for each in node.control.lan().networks) == count, node.name)
        for each in node.control.lan().networks:
            if each.here:
                node.control.allow_on_lan(TOPIC, True, each.network)

    def linked(self, name: str, others: Sequence[str]) -> list[str]:
        """To which of these others a node has an open link."""
        devices = {to_text(Sort.DEVICE, self.nodes[other].peer): other for other in others}
        peers = self.nodes[name].control.peers().peers
        return [devices[each.device] for each in peers if each.up and each.device in devices]

    def say(self, name: str, text: str) -> str:
        """A node publishes; the id of the event."""
        (event,) = self.nodes[name].control.publish(STREAM, [text.encode()]).ids
        return event

    def has(self, name: str, events: Sequence[str]) -> bool:
        """Whether an application was handed all of these."""
        heard = {each.event for each in self.readers[name].heard}
        return all(event in heard for event in events)

    def until_heard(self, names: Sequence[str], events: Sequence[str]) -> None:
        """Wait until all of these have all of those."""
        wait_for(lambda: all(self.has(name, events) for name in names), f"{names} hear {len(events)}")

    def wrong(self) -> Iterator[str]:
        """What is not as it should be at any reader, and what any process complained of."""
        for name, reader in self.readers.items():
            events = [each.event for each in reader.heard]
            if len(set(events)) != len(events):
                yield f"{name} was handed something twice"
            yield from (f"{name}: {strange}" for strange in reader.strange)
        for name, node in self.nodes.items():
            words = (node.home.path / "stderr.txt").read_text()
            if words:
                yield f"{name}: {words[-2000:]}"


def wait_for(holds: Callable[[], bool], what: str) -> None:
    """Look again and again; `TimeoutError` if it does not come."""
    if not until(holds, LIMIT):
        raise TimeoutError(f"not within {LIMIT:.0f} s: {what}")
