"""The same nodes over sockets and in a simulation: the same ring, and the same events at everybody.

Four of each, twenty under LINNET_SOAK=1. Times, and orders between authors, may differ; nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from random import Random

import pytest
from msgspec import Struct
from tests.conftest import SOAK

from linnet.core.effects import Deliver
from linnet.core.ids import Contact, PeerId
from linnet.delivery.commands import Consumed
from linnet.event.event import Event
from linnet.net.config import NetConfig
from linnet.node.config import NodeConfig, NodeSection, TrackerlessSection
from linnet.node.library import Node
from linnet.node.subscription import Subscription
from linnet.overlay.config import Overlay
from linnet.overlay.gossip.commands import ExamineOverlay, TrackerlessStatus
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.peer.config import PeerConfig
from linnet.peer.interface import Handed, Start
from linnet.peer.peer import Peer
from linnet.sim.links import LinkModel, constant_latency
from linnet.sim.network import Network
from linnet.sim.seeded_random import SeededEntropy, seeded_identity
from linnet.store.memory import MemoryStore
from linnet.streams.commands import Publish, Subscribe

COUNT = 20 if SOAK else 4
EACH = 3
STREAM = "weather"
LIMIT = 900.0 if SOAK else 200.0
pytestmark = pytest.mark.timeout(LIMIT + 60)
PERIOD, DELAY, PAUSE = 1.0, 1.0, 2.0


class Seen(Struct):
    """What is the same everywhere: nodes are counted in the order of their keys."""

    beside: dict[int, list[int]]
    """Who stands right before and right behind each on the ring."""
    heard: dict[int, dict[int, list[str]]]
    """What each reader was handed of each author, in that order."""


def bodies(place: int) -> list[str]:
    return [f"{place} {number}" for number in range(EACH)]


def seen(peers: list[PeerId], rings: dict[PeerId, TrackerlessStatus], heard: dict[PeerId, list[str]]) -> Seen:
    order = {peer: place for place, peer in enumerate(sorted(peers))}
    names = {peers.index(peer): place for peer, place in order.items()}
    beside, by_author = {}, {}
    for peer in peers:
        (ring,) = rings[peer].rings
        beside[order[peer]] = [order[each] for each in (ring.predecessors[0], ring.successors[0])]
        said: dict[int, list[str]] = {place: [] for place in range(len(peers))}
        for body in heard[peer]:
            number, _, rest = body.partition(" ")
            said[names[int(number)]].append(rest)
        by_author[order[peer]] = said
    return Seen(beside, by_author)


def whole(status: TrackerlessStatus, peers: list[PeerId], peer: PeerId) -> bool:
    """Whether a node stands where it belongs, with those beside it as neighbours."""
    order = sorted(peers)
    place = order.index(peer)
    right = {order[place - 1], order[(place + 1) % len(order)]}
    return any(
        {*ring.successors[:1], *ring.predecessors[:1]} == right and right <= set(ring.neighbors)
        for ring in status.rings
    )


async def by_sockets() -> Seen:
    async with asyncio.timeout(LIMIT), AsyncExitStack() as stack:
        nodes: list[Node] = []
        for number in range(COUNT):
            section = NodeSection(
                label=f"n{number}",
                overlay=Overlay.RING,
                bootstrap=tuple(node.address for node in nodes[:2]),
                listen=("tls://127.0.0.1:0",),
            )
            trackerless = TrackerlessSection(period=PERIOD, release_delay=DELAY, seek_pause=PAUSE)
            config = NodeConfig(node=section, trackerless=trackerless, net=NetConfig(linger=0.5))
            nodes.append(await stack.enter_async_context(Node(config=config)))
        readers = [await stack.enter_async_context(node.subscribe(STREAM)) for node in nodes]
        peers = [node.peer for node in nodes]
        rings = {}
        for node in nodes:
            while not whole(status := await node.overlay.status(), peers, node.peer):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
            rings[node.peer] = status
        for number, node in enumerate(nodes):
            await node.publish(STREAM, bodies(number))
        heard = {node.peer: await read(reader) for node, reader in zip(nodes, readers, strict=True)}
        return seen(peers, rings, heard)


async def read(subscription: Subscription) -> list[str]:
    heard: list[str] = []
    async for event in subscription:
        heard.append(event.body.decode())
        if len(heard) == COUNT * EACH:
            break
    return heard


def by_simulation() -> Seen:
    network = Network(1, LinkModel(constant_latency(1.0)))
    identities = [seeded_identity(1, f"n{number}", network.now) for number in range(COUNT)]
    peers = [identity.peer for identity in identities]
    heard: dict[PeerId, list[str]] = {peer: [] for peer in peers}

    def deliver(peer: PeerId, effect: Deliver[Handed], now: float) -> None:
        heard[peer] += [item.body.decode() for item in effect.items if isinstance(item, Event)]
        network.ask(peer, Consumed(effect.subscription, len(effect.items)))

    for number, identity in enumerate(identities):
        config = PeerConfig(
            listens=(f"tls://n{number}:1",),
            overlay=Overlay.RING,
            trackerless=TrackerlessConfig(period=PERIOD, release_delay=DELAY, seek_pause=PAUSE),
            bootstrap=tuple(Contact(peers[at], (f"tls://n{at}:1",)) for at in range(min(2, number))),
        )
        store = MemoryStore()
        machine = Peer(config, identity, store, Random(number), entropy=SeededEntropy(1, f"n{number}"))
        network.add(identity.peer, machine, deliver=deliver, store=store)
        network.ask(identity.peer, Start())
        network.ask(identity.peer, Subscribe(1, STREAM))
    status = examined(network)
    for _ in range(300):
        network.run(network.elapsed + 1.0)
        if all(whole(status(peer), peers, peer) for peer in peers):
            break
    rings = {peer: status(peer) for peer in peers}
    for number, peer in enumerate(peers):
        network.ask(peer, Publish(STREAM, tuple(body.encode() for body in bodies(number))))
    network.run(network.elapsed + 60.0)
    return seen(peers, rings, heard)


def examined(network: Network) -> Callable[[PeerId], TrackerlessStatus]:
    def status(peer: PeerId) -> TrackerlessStatus:
        request = network.ask(peer, ExamineOverlay())
        network.run(network.elapsed)
        result = network.answers[request]
        assert isinstance(result, TrackerlessStatus)
        return result

    return status


async def test_the_ring_and_what_everyone_hears_are_those_of_a_simulation() -> None:
    simulated = by_simulation()
    assert simulated.beside == {place: [(place - 1) % COUNT, (place + 1) % COUNT] for place in range(COUNT)}
    said = [body.partition(" ")[2] for body in bodies(0)]
    assert simulated.heard == {reader: dict.fromkeys(range(COUNT), said) for reader in range(COUNT)}
    assert await by_sockets() == simulated
