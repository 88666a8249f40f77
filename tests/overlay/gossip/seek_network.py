"""A population in communities, linked by likeness, with fingers and at random; walkers go over it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from hashlib import sha256
from random import Random

from msgspec import Struct
from tests.overlay.gossip.ring_network import START, keys_of, peer_of

from linnet.core.ids import PeerId, TopicId
from linnet.overlay.gossip.config import DAY, TrackerlessConfig
from linnet.overlay.gossip.messages import Descriptor, Seek, Sought
from linnet.overlay.gossip.profile_filter import (
    ShownFilter,
    bits_of,
    cosine,
    evidence,
    make_release,
    read_filter,
)
from linnet.overlay.gossip.random_walk_search import WALK, Found, Hop, Walkers, Ways
from linnet.overlay.gossip.topic_tags import TopicKeys, epoch_of, tag_in

EPOCH = epoch_of(START)


class Search(Struct):
    """What became of one search."""

    found: list[Found]
    visited: int
    """Walkers' steps until the first member was reached; all of them if none was."""
    answers: int
    """Messages that answers took on their ways back."""


class Seeker:
    """One node: its topics, its descriptor, its links."""

    def __init__(self, name: object, topics: list[TopicKeys], config: TrackerlessConfig, rng: Random) -> None:
        self.peer = peer_of(name)
        self.topics = topics
        self.links: list[PeerId] = []
        self.alike: list[PeerId] = []
        noise = sha256(self.peer).digest()
        shown = make_release([tag_in(keys, EPOCH) for keys in topics], EPOCH, noise, config)
        self.descriptor = Descriptor(
            self.peer, 1, EPOCH, shown.filter, shown.epsilon_milli, shown.hashes, ("tls://there:1",),
            int(START + DAY), bytes(64),
        )  # fmt: skip
        self.shown: ShownFilter = read_filter(self.descriptor)
        self.likely = (self.shown.bits, evidence(self.shown))
        self.seeking = Walkers(config, rng, rng.randbytes, noise)
        for keys in topics:
            self.seeking.add_topic(keys)


class SeekNetwork:
    """Communities of nodes; a few topics are everyone's, most are of one community."""

    def __init__(
        self, nodes: int, communities: int, seed: int, config: TrackerlessConfig | None = None
    ) -> None:
        self.config = config or TrackerlessConfig()
        self.rng = Random(seed)
        self.now = START
        self.seekers: dict[PeerId, Seeker] = {}
        self.members: dict[TopicId, list[PeerId]] = {}
        self.keys: dict[TopicId, TopicKeys] = {}
        pools = [[keys_of(f"{c} {t}") for t in range(60)] for c in range(communities)]
        everyone = [keys_of(f"any {t}") for t in range(200)]
        weights = [1 / (rank + 3) for rank in range(60)]
        for number in range(nodes):
            own = dict.fromkeys(self.rng.choices(pools[number % communities], weights, k=60))
            topics = [*list(own)[:26], *self.rng.sample(everyone, 4)]
            seeker = Seeker(number, topics, self.config, Random(self.rng.random()))
            self.seekers[seeker.peer] = seeker
            for keys in topics:
                self.keys[keys.topic] = keys
                self.members.setdefault(keys.topic, []).append(seeker.peer)

    def link(self, similar: int = 20, fingers: int = 5, random: int = 10) -> None:
        """Each to those most like it, to some at random of the fifth least like it, and to anyone."""
        peers = list(self.seekers)
        bits, hashes = self.config.filter_bits, self.config.filter_hashes
        for peer, seeker in self.seekers.items():
            own = bits_of([tag_in(keys, EPOCH) for keys in seeker.topics], EPOCH, bits, hashes)
            others = [other for other in peers if other != peer]
            others.sort(key=lambda other: -cosine(own, self.seekers[other].shown))
            far = self.rng.sample(others[-len(others) // 5 :], fingers)
            anyone = self.rng.sample(peers, random)
            seeker.alike = others[:similar]
            seeker.links = list(dict.fromkeys([*others[:similar], *far, *anyone]))

    def topics_of_size(self, least: int, most: int) -> list[TopicKeys]:
        return [self.keys[topic] for topic, who in self.members.items() if least <= len(who) <= most]

    def search(self, peer: PeerId, keys: TopicKeys) -> Search:
        """One search to its end, over links that always work; the one before is long forgotten."""
        self.now += WALK
        result = Search([], 0, 0)
        seeker = self.seekers[peer]
        first = seeker.seeking.send_walkers(
            keys, EPOCH, Ways(seeker.links, self._score, seeker.alike), self.now
        )
        waiting: deque[tuple[PeerId, PeerId, Seek | Sought]] = deque()
        self._post(waiting, peer, first, result)
        while waiting:
            source, target, message = waiting.popleft()
            node = self.seekers[target]
            if isinstance(message, Sought):
                result.answers += 1
                hop = node.seeking.handle_sought(source, message, self.now)
            else:
                result.visited += not result.found
                hop = node.seeking.handle_seek(
                    source, message, node.descriptor, Ways(node.links, self._score, node.alike), self.now
                )
            self._post(waiting, target, hop, result)
        return result

    def _post(
        self, waiting: deque[tuple[PeerId, PeerId, Seek | Sought]], peer: PeerId, hop: Hop, result: Search
    ) -> None:
        if hop.found is not None:
            result.found.append(hop.found)
        for target, message in hop.sends:
            # Answers overtake walkers, so that the steps until the first member are counted.
            if isinstance(message, Sought):
                waiting.appendleft((peer, target, message))
            else:
                waiting.append((peer, target, message))

    def _score(self, peer: PeerId) -> tuple[int, float]:
        return self.seekers[peer].likely


def success(
    network: SeekNetwork, topics: Sequence[TopicKeys], searches: int, rng: Random, tries: int = 1
) -> tuple[float, float]:
    """Share of non-members that find a member in so many searches, and mean steps of the last one."""
    steps: list[int] = []
    for _ in range(searches):
        keys = rng.choice(topics)
        peer = rng.choice(list(network.seekers))
        while peer in network.members[keys.topic]:
            peer = rng.choice(list(network.seekers))
        for _ in range(tries):
            search = network.search(peer, keys)
            if search.found:
                steps.append(search.visited)
                break
    return len(steps) / searches, sum(steps) / max(1, len(steps))
