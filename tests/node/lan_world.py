"""Real nodes in network namespaces, on local networks that are joined by nothing but a node on both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

from msgspec.structs import replace
from tests.edge.namespaces import Lab
from tests.node.killed_world import GuardedWorld, at_once, configure, until
from tests.node.ring_world import BRISK, StreamReader

from linnet.api.node_commands import AllowOnLan, ListPeers
from linnet.cli.play.nodes import LiveNode
from linnet.edge.commands import ExamineLan
from linnet.identity.text import event_text
from linnet.node.config import LanSection, NodeConfig
from linnet.overlay.config import Overlay
from linnet.peer.config import LinkConfig
from linnet.streams.commands import Publish
from linnet.streams.stream_names import topic_of

STREAM = "village"
TOPIC = topic_of(STREAM)
QUICK = replace(BRISK, links=LinkConfig(backoff_most=2.0, ping_period=2.0, ping_timeout=1.0))
"""Nodes that notice within seconds that a cable was pulled."""
LIMIT = 90.0
"""Seconds after which what a test waits for will not come."""


class LanWorld(GuardedWorld):
    """Nodes of several networks, each with an application that reads one stream."""

    def __init__(self, directory: Path, lab: Lab) -> None:
        super().__init__()
        self._directory = directory
        self._lab = lab
        self.spaces: dict[str, str] = {}
        self.readers: dict[str, StreamReader] = {}

    def add(self, name: str) -> str:
        """A node in a namespace of its own, which is returned; it has no address of any other."""
        space = self.spaces[name] = self._lab.space(name)
        within = ("ip", "netns", "exec", space)
        node = LiveNode(self._directory / name, relay=False, base=QUICK, group=self.group, within=within)
        configure(node, _on_lans)
        self.nodes[name] = node
        return space

    def start(self, networks: dict[str, int]) -> None:
        """Start all; the stream is allowed on the networks that each is on, of which there are so many."""
        at_once(LiveNode.start, self.nodes.values())
        for name, node in self.nodes.items():
            self.allow(node, networks.get(name, 1))
            reader = self.readers[name] = StreamReader(node, STREAM, Random(name))
            self.let_read(reader)

    def allow(self, node: LiveNode, count: int) -> None:
        """Let the stream be spoken of on every network that a node is on."""
        wait_for(
            lambda: sum(each.is_here for each in node.control.ask(ExamineLan()).networks) == count, node.name
        )
        for each in node.control.ask(ExamineLan()).networks:
            if each.is_here:
                node.control.ask(AllowOnLan(TOPIC, True, each.network))

    def linked(self, name: str, others: Sequence[str]) -> list[str]:
        """To which of these others a node has an open link."""
        devices = {self.nodes[other].peer: other for other in others}
        peers = self.nodes[name].control.ask(ListPeers()).peers
        return [devices[each.peer] for each in peers if each.up and each.peer in devices]

    def say(self, name: str, text: str) -> str:
        """A node publishes; the id of the event."""
        (event,) = self.nodes[name].control.ask(Publish(STREAM, (text.encode(),))).ids
        return event_text(event)

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
        yield from self.last_words()


def wait_for(holds: Callable[[], bool], what: str) -> None:
    """Look again and again; `TimeoutError` if it does not come."""
    if not until(holds, LIMIT):
        raise TimeoutError(f"not within {LIMIT:.0f} s: {what}")


def _on_lans(config: NodeConfig) -> NodeConfig:
    section = replace(config.node, overlay=Overlay.RING)
    return replace(config, node=section, lan=LanSection(enabled=True))
