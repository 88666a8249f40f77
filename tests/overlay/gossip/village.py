"""Nodes without trackers in a small simulated world: who they are, what they are in, what became of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.identity.keys import SigningKey
from linnet.machine.outbox import Outbox
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.part import GossipOverlay
from linnet.overlay.notices import Adjacency
from linnet.sim.light_network import LightNetwork, PartMachine
from linnet.sim.links import LinkModel, constant_latency
from linnet.sim.seeded_random import SeededEntropy, named_luck
from linnet.sim.signature_cache import IDEAL
from linnet.store.memory import MemoryStore


class Village:
    """Some nodes, of which everyone knows the first two."""

    def __init__(
        self, count: int, seed: int = 1, loss: float = 0.0, config: TrackerlessConfig | None = None
    ) -> None:
        self.seed = seed
        self.config = config or TrackerlessConfig()
        self.world = LightNetwork(seed, LinkModel(constant_latency(20.0), loss=loss))
        self.keys = [SigningKey(named_luck(seed, f"key {at}").randbytes(32)) for at in range(count)]
        self.peers = [PeerId(key.public) for key in self.keys]
        self.stores = [MemoryStore() for _ in range(count)]
        self.nodes: list[GossipOverlay] = []
        self.machines: list[PartMachine] = []
        for at in range(count):
            out = Outbox()
            self.nodes.append(self._node(at, out))
            self.machines.append(self._machine(at, out))
            self.world.add(self.peers[at], self.machines[at])

    def _machine(self, at: int, out: Outbox) -> PartMachine:
        return PartMachine(out, self.nodes[at])

    def _node(self, at: int, out: Outbox, life: int = 0) -> GossipOverlay:
        return GossipOverlay(
            self.keys[at],
            self.config,
            self.stores[at].cells,
            named_luck(self.seed, f"node {at} {life}"),
            SeededEntropy(self.seed, f"node {at} {life}"),
            out,
            Adjacency(out),
            (f"tls://10.0.0.{at}:1",),
            IDEAL,
        )

    def start(self, at: Iterable[int] | None = None) -> None:
        """Bring nodes up; all of them if none is named."""
        first = [Contact(peer, ("tls://x:1",)) for peer in self.peers[:2]]
        for each in range(len(self.nodes)) if at is None else at:
            self._do(each, partial(self.nodes[each].begin, first, self.world.now))

    def join(self, at: int, topic: TopicId, keeps: bool = False, contacts: Sequence[int] = ()) -> None:
        """A node joins a topic."""
        known = [Contact(self.peers[each], ("tls://x:1",)) for each in contacts]
        self._do(at, partial(self.nodes[at].topics.join_topic, topic, keeps, self.world.now, known))

    def _do(self, at: int, act: Callable[[], None]) -> None:
        self.world.perform(self.peers[at], self.machines[at].perform(act, self.world.now))

    def crash(self, at: int) -> None:
        """A node dies."""
        self.world.crash(self.peers[at])

    def restart(self, at: int, life: int = 1) -> None:
        """A node that died is back, with what it had written down."""
        out = Outbox()
        self.nodes[at] = self._node(at, out, life)
        self.machines[at] = self._machine(at, out)
        self.world.restart(self.peers[at], self.machines[at])
        self.start([at])

    def run(self, seconds: float) -> None:
        """Let time pass."""
        self.world.run(self.world.elapsed + seconds)

    def neighbors(self, at: int, topic: TopicId) -> list[int]:
        """The neighbours of a node in a topic, by number."""
        return [self.peers.index(peer) for peer in self.nodes[at].topics.neighbors(topic)]

    def is_connected(self, topic: TopicId, members: Iterable[int]) -> bool:
        """Whether these reach each other along neighbours."""
        members = list(members)
        seen, edge = {members[0]}, [members[0]]
        while edge:
            for each in self.neighbors(edge.pop(), topic):
                if each not in seen and each in members:
                    seen.add(each)
                    edge.append(each)
        return len(seen) == len(members)

    def is_ring(self, topic: TopicId, members: Iterable[int]) -> bool:
        """Whether all of these have as neighbours those who really stand beside them."""
        order = sorted(self.peers[at] for at in members)
        for at in members:
            place = order.index(self.peers[at])
            beside = {order[place - 1], order[(place + 1) % len(order)]} - {self.peers[at]}
            if not beside <= set(self.nodes[at].topics.neighbors(topic)):
                return False
        return True
