"""Real nodes of content that are killed and started again, each with an application that wants something."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

from msgspec import Struct
from msgspec.structs import replace
from tests.node.killed_world import KilledWorld, bootstraps, configure, until
from tests.node.lasting_reader import LastingReader

from linnet.api.content import MatchView, ReadContent
from linnet.cli.play.nodes import LiveNode
from linnet.content.commands import ListContent
from linnet.content.predicate import Predicate, read_predicate
from linnet.node.client import ControlClient
from linnet.node.config import ContentSection, KademliaSection, NodeConfig
from linnet.peer.config import LinkConfig

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


class MatchReader(LastingReader):
    """Reads one kept subscription at one node, and remembers what it is handed."""

    def __init__(self, node: LiveNode, predicate: str, luck: Random) -> None:
        super().__init__(f"{node.name} wants {predicate}", node, luck)
        self.text = predicate
        self.predicate: Predicate = read_predicate(predicate)
        self.heard: list[Heard] = []

    def _items(self, reading: ControlClient) -> Iterator[object]:
        return reading.lines(ReadContent(0, self.text, "application"), manual=True)

    def _take(self, item: object) -> str | None:
        if isinstance(item, MatchView):
            self.heard.append(Heard(self.lives, item.number, item.event, item.attributes))
            return item.event
        self.strange.append(repr(item))
        return None


class ContentCrashWorld(KilledWorld):
    """Nodes of content."""

    def __init__(self, directory: Path, nodes: int, seed: int) -> None:
        super().__init__(directory, (f"node{number}" for number in range(nodes)), BRISK)
        for name, others in bootstraps(self.nodes).items():
            table = replace(TABLE, bootstrap=others)
            configure(self.nodes[name], partial(replace, kademlia=table))
        self.readers = {
            name: MatchReader(node, WANTED[place % len(WANTED)], Random(f"{seed} {name}"))
            for place, (name, node) in enumerate(self.nodes.items())
        }

    def set_up(self) -> None:
        """Start everybody, a few at once, and let all applications subscribe."""
        self.start_all()
        self.let_read(*self.readers.values())
        for reader in self.readers.values():
            reader.await_subscription(300.0)
        if not until(self.is_settled, 120.0):
            raise TimeoutError("subscriptions did not stand within two minutes")

    def is_settled(self) -> bool:
        """Whether all subscriptions stand, as far as nodes know, and no attribute has two rendezvous."""
        told = [node.control.ask(ListContent()) for node in self.nodes.values()]
        held = [attribute for each in told for attribute in each.rendezvous]
        return all(each.settled for each in told) and len(held) == len({*held})
