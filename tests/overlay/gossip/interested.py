"""Nodes with interests, for tests: descriptors that nobody signed, and clusters without a network."""

from __future__ import annotations

from hashlib import sha256
from random import Random

from linnet.core.ids import PeerId
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.descriptor import believing
from linnet.overlay.gossip.interest_clustering import InterestClustering
from linnet.overlay.gossip.known_peers import KnownPeers
from linnet.overlay.gossip.messages import Descriptor
from linnet.overlay.gossip.profile_filter import Interests, bits_of, make_release
from linnet.overlay.gossip.trust import Trust
from linnet.store.memory import MemoryStore

CONFIG = TrackerlessConfig()
FOREVER = 10**6


def tag(number: int) -> bytes:
    return sha256(f"tag {number}".encode()).digest()


def peer_id(number: int) -> PeerId:
    return PeerId(sha256(f"peer {number}".encode()).digest())


def own_interests(topics: list[int], epoch: int = 0, config: TrackerlessConfig = CONFIG) -> Interests:
    bits = bits_of(map(tag, topics), epoch, config.filter_bits, config.filter_hashes)
    return Interests(epoch, bits, len(topics), config.filter_bits, config.filter_hashes)


def described(
    number: int,
    topics: list[int],
    version: int = 1,
    epoch: int = 0,
    config: TrackerlessConfig = CONFIG,
    filter: bytes | None = None,
    expires: int = FOREVER,
) -> Descriptor:
    """What a node says of itself; its filter may be a lie."""
    made = make_release(map(tag, topics), epoch, sha256(b"%d" % number).digest(), config)
    shown = made.filter if filter is None else filter
    return Descriptor(
        peer_id(number), version, epoch, shown, made.epsilon_milli, made.hashes, (), expires, bytes(64)
    )


def unsigned(descriptor: Descriptor, now: float) -> None:
    """Signatures are not what these tests are about."""


class Node:
    """A clustering with its surroundings."""

    def __init__(
        self, number: int, topics: list[int], config: TrackerlessConfig = CONFIG, seed: int = 0
    ) -> None:
        self.peer = peer_id(number)
        self.descriptor = described(number, topics, config=config)
        self.acquaintances = KnownPeers()
        self.trust = Trust(MemoryStore().cells, config)
        self.clustering = InterestClustering(
            self.peer, config, self.acquaintances, self.trust, Random(seed + number), believing(unsigned)
        )
        self.clustering.similarity.set_interests(own_interests(topics, config=config))

    def meet(self, *descriptors: Descriptor) -> list[PeerId]:
        for one in descriptors:
            self.acquaintances.learn_descriptor(one, 0.0)
        return [one.peer for one in descriptors]
