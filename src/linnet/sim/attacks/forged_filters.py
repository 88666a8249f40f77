"""Forged filters in a network of similar peers: how many nodes keep a forger for seeming similar, or unlike.

Every honest node runs the shipped `InterestClustering` and asks one other node in each round. Forgers show a
filter that is made for being chosen, and answer with forgers alone. There are no links and no signatures
here: the bench only measures which nodes are chosen for their filters.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from hashlib import sha256
from random import Random

from msgspec import Struct, structs

from linnet.core.ids import PeerId
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.descriptor import believing
from linnet.overlay.gossip.interest_clustering import InterestClustering
from linnet.overlay.gossip.known_peers import KnownPeers
from linnet.overlay.gossip.messages import Descriptor
from linnet.overlay.gossip.profile_filter import Interests, bits_of, make_release
from linnet.overlay.gossip.trust import Trust
from linnet.sim.seeded_random import named_luck
from linnet.store.memory import MemoryStore

_TOPICS = 2000
_HOME, _OWN, _ELSEWHERE = 80, 30, 10
"""Topics of a community, and of one of its members inside and outside of it."""
_ENDS = 10**6
_FULL = 1 / 3
"""Approximate share of ones in the fullest filter that is believed."""


class Forgery(StrEnum):
    """The filter that forgers show."""

    ONES = "all ones"
    ZEROS = "all zeros"
    FULL = "as full as is believed"


class ForgeryPlan(Struct, frozen=True):
    """The parameters of one run."""

    forgery: Forgery
    communities: int = 8
    members: int = 15
    """Members of each community."""
    forgers: int = 12
    rounds: int = 15
    drawn: int = 10
    """Nodes in the random sample of each node."""
    seed: int = 1


class ForgeryFigures(Struct, frozen=True):
    """How many nodes keep a forger, and how many keep a node on average."""

    most_alike: int
    """Honest nodes that keep the most successful forger for being similar."""
    mean_alike: float
    """Honest nodes that keep a node for being similar, on average."""
    most_fingers: int
    mean_fingers: float

    @property
    def ratio(self) -> float:
        """How much more often the most successful forger is kept than the mean node."""
        alike = self.most_alike / self.mean_alike if self.mean_alike else 0.0
        fingers = self.most_fingers / self.mean_fingers if self.mean_fingers else 0.0
        return max(alike, fingers)


def measure_forgery(plan: ForgeryPlan) -> ForgeryFigures:
    """Run a plan to its end."""
    bench = _Bench(plan)
    for _ in range(plan.rounds):
        bench.round()
    return bench.figures()


class _Node:
    """One node: its filter, and its clustering of other nodes."""

    def __init__(self, peer: PeerId, topics: list[int], config: TrackerlessConfig, rng: Random) -> None:
        tags = [sha256(b"tag %d" % number).digest() for number in topics]
        made = make_release(tags, 0, rng.randbytes(32), config)
        bits = bits_of(tags, 0, config.filter_bits, config.filter_hashes)
        self.descriptor = Descriptor(
            peer, 1, 0, made.filter, made.epsilon_milli, made.hashes, (), _ENDS, bytes(64)
        )
        self.acquaintances = KnownPeers()
        trust = Trust(MemoryStore().cells, config)
        self.clustering = InterestClustering(
            peer, config, self.acquaintances, trust, rng, believing(_unsigned)
        )
        self.clustering.similarity.set_interests(
            Interests(0, bits, len(topics), config.filter_bits, config.filter_hashes)
        )
        self.sample: list[PeerId] = []


class _Bench:
    def __init__(self, plan: ForgeryPlan) -> None:
        self._plan = plan
        self._config = config = TrackerlessConfig(close=10)
        self._rng = rng = named_luck(plan.seed, f"forgery/{plan.forgery}")
        homes = [rng.sample(range(_TOPICS), _HOME) for _ in range(plan.communities)]
        self._nodes: dict[PeerId, _Node] = {}
        for number in range(plan.communities * plan.members):
            topics = rng.sample(homes[number % plan.communities], _OWN) + rng.sample(
                range(_TOPICS), _ELSEWHERE
            )
            self._add(topics)
        self._honest = list(self._nodes)
        for _ in range(plan.forgers):
            node = self._add([])
            node.descriptor = structs.replace(node.descriptor, filter=self._forged(config.filter_bits))
        everyone = list(self._nodes)
        for node in self._nodes.values():
            node.sample = rng.sample(everyone, plan.drawn)

    def _add(self, topics: list[int]) -> _Node:
        peer = PeerId(self._rng.randbytes(32))
        node = self._nodes[peer] = _Node(peer, topics, self._config, Random(self._rng.getrandbits(64)))
        return node

    def _forged(self, bits: int) -> bytes:
        match self._plan.forgery:
            case Forgery.ONES:
                return b"\xff" * (bits // 8)
            case Forgery.ZEROS:
                return bytes(bits // 8)
            case Forgery.FULL:
                ones = self._rng.sample(range(bits), int(_FULL * bits))
                return sum(1 << bit for bit in ones).to_bytes(bits // 8, "little")

    def round(self) -> None:
        """Run a round: each honest node draws another node, and asks a similar one."""
        rng, everyone = self._rng, list(self._nodes)
        for peer in self._honest:
            node = self._nodes[peer]
            node.sample[rng.randrange(self._plan.drawn)] = rng.choice(everyone)
            for other in node.sample:
                node.acquaintances.learn_descriptor(self._nodes[other].descriptor, 0.0)
            node.clustering.refresh_fingers(node.sample, 0.0)
            target = node.clustering.choose_target(node.sample)
            if target is not None:
                node.clustering.handle_answer(target, self._answer(target, node.descriptor), node.sample, 0.0)

    def _answer(self, target: PeerId, asker: Descriptor) -> tuple[Descriptor, ...]:
        node = self._nodes[target]
        if target in self._honest:
            return node.clustering.choose_alike(asker, node.sample, (), node.descriptor, 0.0)
        forgers = [each.descriptor for each in list(self._nodes.values())[len(self._honest) :]]
        return tuple(self._rng.sample(forgers, min(self._config.gossip, len(forgers))))

    def figures(self) -> ForgeryFigures:
        """Count how many nodes keep each node."""
        alike: Counter[PeerId] = Counter()
        fingers: Counter[PeerId] = Counter()
        for peer in self._honest:
            alike.update(self._nodes[peer].clustering.view)
            fingers.update(self._nodes[peer].clustering.fingers)
        forgers = list(self._nodes)[len(self._honest) :]
        return ForgeryFigures(
            most_alike=max(alike[peer] for peer in forgers),
            mean_alike=alike.total() / len(self._nodes),
            most_fingers=max(fingers[peer] for peer in forgers),
            mean_fingers=fingers.total() / len(self._nodes),
        )


def _unsigned(descriptor: Descriptor, now: float) -> None:
    """Accept every descriptor: nothing is signed here."""
