"""Real nodes without any tracker, killed and started again, each with applications that read its streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random

from msgspec import Struct
from msgspec.structs import replace
from tests.node.killed_world import KilledWorld, bootstraps, configure
from tests.node.lasting_reader import LastingReader

from linnet.api.items import CaughtUpView, EventView, MissedView
from linnet.cli.play.nodes import LiveNode
from linnet.delivery.config import DeliveryConfig
from linnet.node.client import ControlClient
from linnet.node.config import NodeConfig, StorageSection, TrackerlessSection
from linnet.overlay.config import Overlay
from linnet.peer.config import LinkConfig
from linnet.streams.commands import Subscribe

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


class StreamReader(LastingReader):
    """Reads one stream durably at one node, and remembers what it is handed."""

    def __init__(self, node: LiveNode, stream: str, luck: Random) -> None:
        super().__init__(f"{node.name} reads {stream}", node, luck)
        self.stream = stream
        self.heard: list[Heard] = []

    def _items(self, reading: ControlClient) -> Iterator[object]:
        return reading.lines(Subscribe(0, self.stream, 0.0, "application"), manual=True)

    def _take(self, item: object) -> str | None:
        match item:
            case EventView():
                chain = f"{item.author}/{item.device}"
                self.heard.append(Heard(self.lives, item.id, chain, item.seq or 0))
                return item.id
            case CaughtUpView():
                pass
            case MissedView():
                self.strange.append(f"missed {item.first} to {item.last}: {item.reason}")
            case _:
                self.strange.append(repr(item))
        return None


class RingWorld(KilledWorld):
    """Nodes on rings."""

    def __init__(self, directory: Path, interests: Sequence[Sequence[str]], keepers: int, seed: int) -> None:
        """Nodes with the streams that each reads; the last few readers of a stream keep it too."""
        self.interests = {f"node{number}": tuple(own) for number, own in enumerate(interests)}
        super().__init__(directory, self.interests, BRISK)
        self._configure(keepers)
        self.readers = [
            StreamReader(self.nodes[name], stream, Random(f"{seed} {name} {stream}"))
            for name, own in self.interests.items()
            for stream in own
        ]

    def _configure(self, keepers: int) -> None:
        """No tracker; two nodes to begin with; some keep what they read."""
        readers: dict[str, list[str]] = {}
        for name, own in self.interests.items():
            for stream in own:
                readers.setdefault(stream, []).append(name)
        for name, others in bootstraps(self.nodes).items():
            kept = tuple(StorageSection(each) for each, who in readers.items() if name in who[-keepers:])
            configure(self.nodes[name], partial(_on_rings, bootstrap=others, storage=kept))

    def set_up(self) -> None:
        """Start everybody, a few at once, and let all applications subscribe."""
        self.start_all()
        self.let_read(*self.readers)
        for reader in self.readers:
            reader.await_subscription(300.0)


def _on_rings(
    config: NodeConfig, bootstrap: tuple[str, ...], storage: tuple[StorageSection, ...]
) -> NodeConfig:
    node = replace(config.node, overlay=Overlay.RING, bootstrap=bootstrap)
    return replace(config, node=node, storage=storage)
