"""Overlays without trackers: what the sampler and comparisons of filters do a second, and what idling costs.

The rates are of processor time of one core, beside a bare keyed hash, which both begin with once for each
new peer. Bytes are those of all messages that the nodes of a small simulated network send in an hour in which
nobody says anything, encoded as they go over a link; by the number of topics that each node is in.
"""

from __future__ import annotations

from functools import partial
from hashlib import blake2b
from random import Random

from bench.intersections import rate
from bench.results import Measure, Plan
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.messages import Message
from linnet.identity.keys import SigningKey
from linnet.machine.outbox import Outbox
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.descriptor import sign_descriptor
from linnet.overlay.gossip.interest_clustering import InterestSimilarity
from linnet.overlay.gossip.part import GossipOverlay
from linnet.overlay.gossip.peer_sampling import CountMin, StreamSampler
from linnet.overlay.gossip.profile_filter import make_interests, make_release
from linnet.overlay.gossip.topic_tags import tag_in, topic_keys
from linnet.overlay.notices import Adjacency
from linnet.peer.messages import CODEC
from linnet.sim.light_network import LightNetwork, PartMachine
from linnet.sim.links import LinkModel, constant_latency
from linnet.sim.seeded_random import SeededEntropy, named_luck
from linnet.sim.signature_cache import IDEAL
from linnet.store.memory import MemoryStore

SECTION = "gossip"
COUNTED = "count an id in the sampler"
OFFERED = "offer an id to the sample"
COMPARED = "compare a filter with our topics"
HASHED = "a keyed hash, beside"
NODES, WARM, HOUR = 24, 600.0, 3600.0
EPOCH = 2800


def idle_name(topics: int) -> str:
    """An hour of a node that is in so many topics."""
    return f"an idle hour, {topics} topics"


def _sampler() -> tuple[StreamSampler, list[PeerId]]:
    config, luck = TrackerlessConfig(), Random(1)
    sketch = CountMin(config.sketch_rows, config.sketch_columns, luck.randbytes(32))
    return StreamSampler(config.view, sketch, luck, config.quantile), [
        PeerId(luck.randbytes(32)) for _ in range(1000)
    ]


def sampler_rates(seconds: float) -> tuple[float, float]:
    """Ids counted and offered for each second of processor time, of a thousand peers."""
    sampler, peers = _sampler()

    def count() -> None:
        for peer in peers:
            sampler.count(peer)

    def offer() -> None:
        for peer in peers:
            sampler.offer(peer)

    return 1000 * rate(count, seconds), 1000 * rate(offer, seconds)


def likeness_rate(seconds: float) -> float:
    """Filters compared with forty topics of our own for each second of processor time; each but once."""
    config, luck = TrackerlessConfig(), Random(2)
    keys = [topic_keys(TopicId(luck.randbytes(32))) for _ in range(60)]
    signer = SigningKey(bytes(32))
    shown = []
    for at in range(200):
        tags = [tag_in(each, EPOCH) for each in luck.sample(keys, 20)]
        made = make_release(tags, EPOCH, luck.randbytes(32), config)
        shown.append(
            sign_descriptor(signer, at, EPOCH, made.filter, made.epsilon_milli, made.hashes, (), 2**31)
        )

    def compare() -> None:
        likeness = InterestSimilarity()
        likeness.set_interests(make_interests(keys[:40], EPOCH, config))
        for each in shown:
            likeness.cosine(each)

    return 200 * rate(compare, seconds)


def hash_rate(seconds: float) -> float:
    """Keyed hashes for each second of processor time."""
    peers = _sampler()[1]

    def hashed() -> None:
        for peer in peers:
            blake2b(peer, digest_size=32, key=b"key").digest()

    return 1000 * rate(hashed, seconds)


def _weigh(message: Message) -> int:
    return len(CODEC.encode(message))


def idle_bytes(topics: int, nodes: int = NODES, hour: float = HOUR) -> float:
    """Bytes that a node sends in an hour, in a network where all are in the same so many topics."""
    world = LightNetwork(
        1, LinkModel(constant_latency(20.0)), weigh=lambda message: len(CODEC.encode(message))
    )
    keys = [SigningKey(named_luck(1, f"key {at}").randbytes(32)) for at in range(nodes)]
    first = [Contact(PeerId(key.public), ("tls://192.0.2.1:7700",)) for key in keys[:2]]
    machines = []
    for at, key in enumerate(keys):
        luck, entropy = named_luck(1, f"node {at}"), SeededEntropy(1, f"node {at}")
        cells = MemoryStore().cells
        hints = (f"tls://192.0.2.{at}:7700",)
        out = Outbox()
        config = TrackerlessConfig()
        node = GossipOverlay(key, config, cells, luck, entropy, out, Adjacency(out), hints, IDEAL)
        machine = PartMachine(out, node)
        machines.append((node, machine))
        world.add(PeerId(key.public), machine)
    now = world.now
    for key, (node, machine) in zip(keys, machines, strict=True):
        peer = PeerId(key.public)
        world.perform(peer, machine.perform(partial(node.begin, first, now), now))
        for topic in range(topics):
            join = partial(node.topics.join_topic, TopicId(bytes([topic]) * 32), False, now)
            world.perform(peer, machine.perform(join, now))
    world.run(WARM)
    before = sum(world.sent(PeerId(key.public))[1] for key in keys)
    world.run(WARM + hour)
    after = sum(world.sent(PeerId(key.public))[1] for key in keys)
    return (after - before) / nodes * HOUR / hour


def measure(plan: Plan) -> list[Measure]:
    """All of it."""
    counted, offered, compared, hashed = [], [], [], []
    for _ in range(plan.runs):
        count, offer = sampler_rates(plan.seconds)
        counted.append(count)
        offered.append(offer)
        compared.append(likeness_rate(plan.seconds))
        hashed.append(hash_rate(plan.seconds))
    taken = [
        Measure(SECTION, HASHED, "1/s", tuple(hashed), "BLAKE2b"),
        Measure(SECTION, COUNTED, "1/s", tuple(counted), "of a thousand, 4 x 1024 counters"),
        Measure(SECTION, OFFERED, "1/s", tuple(offered), "a sample of 20"),
        Measure(SECTION, COMPARED, "1/s", tuple(compared), "1,024 bits, each filter for the first time"),
    ]
    for topics in (0, 1, 4, 16) if plan.quick else (0, 1, 4, 16, 64):
        note = f"{NODES} nodes, all in the same topics"
        taken.append(Measure(SECTION, idle_name(topics), "bytes", (idle_bytes(topics),), note))
    return taken
