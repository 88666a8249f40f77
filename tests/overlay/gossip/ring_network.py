"""Members of topics on a synchronous network: rounds of gossip, and events that spread hop by hop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from random import Random

from msgspec import Struct

from linnet.core.ids import PeerId, TopicId
from linnet.overlay.gossip.config import DAY, TrackerlessConfig
from linnet.overlay.gossip.dissemination import choose_targets
from linnet.overlay.gossip.known_peers import KnownPeers
from linnet.overlay.gossip.messages import Descriptor
from linnet.overlay.gossip.ring import position
from linnet.overlay.gossip.ring_gossip import Rings
from linnet.overlay.gossip.topic_tags import TopicKeys, epoch_of, proof, topic_keys

START = 1_700_000_000.0


def peer_of(name: object) -> PeerId:
    return PeerId(sha256(f"peer {name}".encode()).digest())


def keys_of(name: object) -> TopicKeys:
    return topic_keys(TopicId(sha256(f"topic {name}".encode()).digest()))


def describe(peer: PeerId, version: int = 1, now: float = START) -> Descriptor:
    return Descriptor(peer, version, 0, b"", 0, 1, ("tls://there:1",), int(now + DAY), bytes(64))


def believe(descriptor: Descriptor, now: float) -> None:
    """A check of descriptors that finds nothing wrong: signatures have tests of their own."""


class Spread(Struct):
    """What became of one event."""

    hops: dict[PeerId, int]
    """Those who have it, and how far it came."""
    sent: int


class RingNetwork:
    """Nodes with the rings of some topics; whoever is dead answers nothing and is sent things in vain."""

    def __init__(self, seed: int = 1, config: TrackerlessConfig | None = None) -> None:
        self.rng = Random(seed)
        self.config = config or TrackerlessConfig()
        self.now = START
        self.nodes: dict[PeerId, Rings] = {}
        self.dead: dict[PeerId, None] = {}
        self.dials = True
        """Whether whoever is wanted is dialled, so that the dead are known in a round at the latest."""
        self.silent: dict[PeerId, None] = {}
        """Members that take part in gossip and pass no event on."""

    def add(self, peer: PeerId, topics: Iterable[TopicKeys]) -> Rings:
        rng = Random(self.rng.random())
        rings = Rings(describe(peer), self.config, KnownPeers(), rng, rng.randbytes(32), believe)
        for keys in topics:
            rings.open_ring(keys, self.now)
        self.nodes[peer] = rings
        return rings

    def populate(self, count: int, keys: TopicKeys, contacts: int = 5) -> None:
        """So many members of one topic, each of which has met a few others, whoever they are."""
        peers = [peer_of(f"{self.rng.random()}") for _ in range(count)]
        for peer in peers:
            self.add(peer, [keys])
        for peer in peers:
            self.introduce(peer, self.rng.sample(peers, min(contacts, count)), keys)

    def introduce(self, peer: PeerId, others: Iterable[PeerId], keys: TopicKeys) -> None:
        epoch = epoch_of(self.now)
        for other in others:
            if other != peer:
                self.nodes[peer].add_member(keys.topic, describe(other), proof(keys, other, epoch), epoch)

    def round(self) -> None:
        """One round of every node that is alive, in any order."""
        self.now += self.config.period
        if self.dials:
            self.break_links()
        order = [peer for peer in self.nodes if peer not in self.dead]
        self.rng.shuffle(order)
        for peer in order:
            question = self.nodes[peer].begin_round(self.now)
            if question is None:
                continue
            other, ask = question
            if other in self.dead:
                self.nodes[peer].drop_member(other, self.now)
                continue
            answer, _ = self.nodes[other].handle_ask(peer, ask, self.now)
            self.nodes[peer].handle_tell(other, answer, self.now)

    def fail(self, peers: Iterable[PeerId]) -> None:
        """These are dead from now on, and nobody knows it yet."""
        self.dead.update(dict.fromkeys(peers))

    def break_links(self) -> None:
        """The links to the dead go down, and they cannot be dialled: whoever wants one knows."""
        for peer, rings in self.nodes.items():
            while peer not in self.dead:
                wanted = {other: None for topic in rings for other in rings[topic].wanted}
                gone = [other for other in wanted if other in self.dead]
                if not gone:
                    break
                for other in gone:
                    rings.drop_member(other, self.now)

    def members(self, keys: TopicKeys) -> list[PeerId]:
        return [p for p, rings in self.nodes.items() if keys.topic in rings and p not in self.dead]

    def sides(self, keys: TopicKeys) -> dict[PeerId, tuple[list[PeerId], list[PeerId]]]:
        """Who in truth stands beside whom: the nearest two on both sides."""
        epoch, order = epoch_of(self.now), self.config.ring_order
        around = sorted(self.members(keys), key=lambda peer: position(peer, keys, epoch, order))
        most = min(self.config.spares, len(around) - 1)
        truth = {}
        for i, peer in enumerate(around):
            ahead = [around[(i + step) % len(around)] for step in range(1, most + 1)]
            back = [around[(i - step) % len(around)] for step in range(1, most + 1)]
            truth[peer] = (ahead, back)
        return truth

    def wrong(self, keys: TopicKeys) -> int:
        """Members whose neighbours on the ring are not who they should be."""
        count = 0
        for peer, sides in self.sides(keys).items():
            ring = self.nodes[peer][keys.topic]
            count += (list(ring.successors), list(ring.predecessors)) != sides
        return count

    def converge(self, keys: TopicKeys, most: int) -> int:
        """Rounds until all rings are right; `most` + 1 if they are not by then."""
        for rounds in range(most + 1):
            if not self.wrong(keys):
                return rounds
            self.round()
        return most + 1

    def links(self, keys: TopicKeys) -> dict[PeerId, list[PeerId]]:
        """Who is a neighbour of whom: an edge is there if either end wants it, and both live."""
        members = self.members(keys)
        up: dict[PeerId, dict[PeerId, None]] = {peer: {} for peer in members}
        for peer in members:
            for other in self.nodes[peer][keys.topic].wanted:
                if other in up:
                    up[peer][other] = None
                    up[other][peer] = None
        return {peer: list(others) for peer, others in up.items()}

    def spread(
        self, keys: TopicKeys, publisher: PeerId, links: dict[PeerId, list[PeerId]], fanout: int
    ) -> Spread:
        """Publish one event. Links to the dead are down, so that spares are taken in their place."""
        result = Spread({publisher: 0}, 0)
        wave: list[tuple[PeerId, PeerId | None]] = [(publisher, None)]
        while wave:
            following: list[tuple[PeerId, PeerId | None]] = []
            for peer, source in wave:
                if peer in self.silent and source is not None:
                    continue
                chosen = self._send(peer, source, keys, links[peer], fanout)
                result.sent += len(chosen)
                for other in chosen:
                    if other not in result.hops:
                        result.hops[other] = result.hops[peer] + 1
                        following.append((other, peer))
            wave = following
        return result

    def _send(
        self, peer: PeerId, source: PeerId | None, keys: TopicKeys, up: Sequence[PeerId], fanout: int
    ) -> tuple[PeerId, ...]:
        ring = self.nodes[peer][keys.topic]
        return choose_targets(ring, () if source is None else (source,), up, fanout, self.rng)
