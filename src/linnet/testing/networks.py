"""Short ways to a small virtual network."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence

from linnet.core.ids import Contact, PeerId
from linnet.peer.interface import Connect, NodeMachine
from linnet.sim.links import LinkModel, constant_latency
from linnet.sim.network import Network
from linnet.sim.seeded_random import named_luck
from linnet.trace.records import Record, Row, row_of

HINTS = ("sim://anywhere",)
"""An address of a simulated node: any will do, none means that it cannot be dialled."""


def steady_links(milliseconds: float = 10.0) -> LinkModel:
    """Links that take this time and lose nothing."""
    return LinkModel(constant_latency(milliseconds))


def named_peer(name: str) -> PeerId:
    """A peer id for machines that need no keys."""
    return PeerId(hashlib.sha256(name.encode()).digest())


def connect(network: Network, edges: Iterable[tuple[PeerId, PeerId]]) -> None:
    """Let the first of each pair dial the second, and run until all links are up."""
    for dialer, target in edges:
        network.ask(dialer, Connect(Contact(target, HINTS)))
    network.run_until_quiet()


def build(
    network: Network,
    names: Sequence[str],
    machine: Callable[[], NodeMachine],
    edges: Iterable[tuple[int, int]] = (),
) -> list[PeerId]:
    """Nodes of these names, spread over the regions in turn, linked by these pairs of numbers."""
    regions = network.table.regions
    peers = [named_peer(name) for name in names]
    for number, peer in enumerate(peers):
        network.add(peer, machine(), region=regions[number % len(regions)])
    connect(network, [(peers[first], peers[second]) for first, second in edges])
    return peers


def random_edges(seed: int, nodes: int, degree: int) -> list[tuple[int, int]]:
    """A connected random graph: a ring, so that none is alone, and chords between free places."""
    luck = named_luck(seed, "edges")
    edges = {(number, (number + 1) % nodes): True for number in range(nodes)}
    places = [number for number in range(nodes) for _ in range(degree - 2)]
    luck.shuffle(places)
    for first, second in zip(places[::2], places[1::2], strict=False):
        if first != second and (first, second) not in edges and (second, first) not in edges:
            edges[first, second] = True
    return list(edges)


class RowTrace:
    """A trace in a list, for looking at."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._counters: dict[PeerId, int] = {}

    def write(self, node: PeerId, record: Record, now: float) -> None:
        """Keep a record."""
        counter = self._counters.get(node, 0)
        self._counters[node] = counter + 1
        self.rows.append(row_of(record, now, node, counter))

    def close(self) -> None:
        """Nothing more comes; what is here stays."""

    def sha256(self) -> str:
        """A hash over all rows in the order of time, node and counter."""
        digest = hashlib.sha256()
        for row in sorted(self.rows, key=lambda row: row[:3]):
            digest.update(repr(row).encode())
        return digest.hexdigest()
