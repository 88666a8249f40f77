"""Attacks on an overlay without trackers, each with a measured number and its bound.

All of them run the shipped machines; each function describes its attack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from random import Random

from msgspec import Struct, structs

from linnet.core.effects import HangUp
from linnet.core.hello import WIRE_VERSION, Hello
from linnet.core.ids import PeerId, TopicId
from linnet.core.inputs import LinkUp, Received
from linnet.core.limits import FRAME_BYTES
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.known_peers import LIMIT
from linnet.overlay.gossip.messages import POINTS, Beside, Descriptor, Intersect, Intersected, Pull, Seek
from linnet.overlay.gossip.part import GossipOverlay
from linnet.overlay.gossip.private_set_intersection import HOUR, Intersections
from linnet.overlay.gossip.random_walk_search import Walkers, Ways
from linnet.overlay.gossip.ring import QUIET
from linnet.overlay.gossip.topic_tags import epoch_of, hint, proof, topic_keys
from linnet.overlay.notices import Adjacency
from linnet.peer.config import LinkConfig, PeerConfig
from linnet.peer.peer import Peer
from linnet.sim.attacks.forged_filters import Forgery, ForgeryPlan, measure_forgery
from linnet.sim.attacks.sampling import Attack, AttackBench, AttackPlan, shipped
from linnet.sim.clock import START
from linnet.sim.light_network import PartMachine
from linnet.sim.overlay.course import run_overlay
from linnet.sim.overlay.ring_dissemination import LargeRing, RingPlan
from linnet.sim.overlay.scenario import OverlayScenario
from linnet.sim.seeded_random import SeededEntropy, named_luck, seeded_identity
from linnet.sim.signature_cache import IDEAL
from linnet.store.memory import MemoryStore
from linnet.trace.records import Record

_TOPIC = TopicId(b"f" * 32)
_HELLO = Hello(WIRE_VERSION, WIRE_VERSION, {}, (), FRAME_BYTES)
_DAY = 86_400


class LinkFlood(Struct, frozen=True):
    """One peer that sends searches as fast as it can, until it is cut off."""

    taken: int
    """Messages that were handled before the cut."""
    records: int
    """Records that were written about the peer."""
    reason: Reason | None
    """The reason of the cut; None: there was none."""


class CrowdFlood(Struct, frozen=True):
    """The state of a node after very many peers have asked it for everything, all at once."""

    acquaintances: int
    sample: int
    walkers: int
    """Searches of others that are remembered."""
    neighbors: int
    """Neighbours in one topic, where all members want the node as theirs."""
    refused: int
    """Messages that were refused, each with a record of the reason."""
    unnamed: int
    """Records of refusals that lack the reason or the peer."""


def flood_of_one(messages: int = 20_000, seed: int = 1) -> LinkFlood:
    """Flood a node with all its limits from one peer over one link."""
    config = TrackerlessConfig()
    ours = seeded_identity(seed, "victim", START)
    node = Peer(
        PeerConfig(trackerless=config),
        ours,
        MemoryStore(),
        named_luck(seed, "victim"),
        entropy=SeededEntropy(seed, "victim"),
    )
    attacker = PeerId(named_luck(seed, "attacker").randbytes(32))
    node.handle(LinkUp(attacker, node.hello, False, None), START)
    records = 0
    for number in range(messages):
        for effect in node.handle(Received(attacker, _walker(number, START)), START):
            records += isinstance(effect, Record)
            if isinstance(effect, HangUp):
                return LinkFlood(number, records, effect.reason)
    return LinkFlood(messages, records, None)


def flood_of_many(peers: int = 3000, seed: int = 1) -> CrowdFlood:
    """Flood a node from so many peers: each introduces itself, sends searches, and wants to be a neighbour,
    twice."""
    config = TrackerlessConfig()
    luck = named_luck(seed, "crowd")
    out = Outbox()
    machine = GossipOverlay(
        seeded_identity(seed, "victim", START).device,
        config,
        MemoryStore().cells,
        luck,
        SeededEntropy(seed, "victim"),
        out,
        Adjacency(out),
        ("sim:victim",),
        IDEAL,
        _unchecked,
    )
    driven = PartMachine(out, machine)
    machine.begin((), START)
    machine.topics.join_topic(_TOPIC, False, START)
    out.clear()
    crowd = [PeerId(luck.randbytes(32)) for _ in range(peers)]
    records: list[Record] = []
    for peer in crowd:
        records += _records(driven.handle(LinkUp(peer, _HELLO, False, None), START))
        records += _records(driven.handle(Received(peer, Pull(1, _descriptor(peer, luck))), START))
        records += _records(driven.handle(Received(peer, _beside(machine.peers.ours, peer)), START))
    # The node chooses the neighbours it wants itself in its next round; then all peers try once more.
    records += _records(driven.perform(lambda: machine.topics.begin_round(START), START))
    for peer in crowd:
        records += _records(driven.handle(Received(peer, _beside(machine.peers.ours, peer)), START))
    walkers, dropped = _walkers(crowd, config, seed)
    refused = [record for record in (*records, *dropped) if record.reason is not None]
    status = machine.status(START)
    return CrowdFlood(
        acquaintances=status.acquaintances,
        sample=len(status.sample),
        walkers=walkers,
        neighbors=len(machine.topics.neighbors(_TOPIC)),
        refused=len(refused),
        unnamed=sum(record.peer is None for record in refused),
    )


def _walkers(crowd: list[PeerId], config: TrackerlessConfig, seed: int) -> tuple[int, list[Record]]:
    """Let every peer send a few searches; return how many are remembered, and the records of the rest."""
    luck = named_luck(seed, "walkers")
    seeking = Walkers(config, luck, SeededEntropy(seed, "walkers"), luck.randbytes(32))
    own = _descriptor(PeerId(luck.randbytes(32)), luck)
    records: list[Record] = []
    most = 0
    for number, peer in enumerate(crowd * 2):
        hop = seeking.handle_seek(
            peer, _walker(number, START), own, Ways(crowd[:2], lambda _: (0, 0.0)), START
        )
        records += hop.records
        most = max(most, len(seeking))
    return most, records


def _walker(number: int, now: float) -> Seek:
    return Seek(number.to_bytes(16, "big"), (1, 2, 3, 4), epoch_of(now), bytes([9]) * 32, 8, False)


def _descriptor(peer: PeerId, luck: Random) -> Descriptor:
    return Descriptor(peer, 1, epoch_of(START), b"", 0, 1, (), int(START) + _DAY, luck.randbytes(64))


def _beside(ours: PeerId, peer: PeerId) -> Beside:
    keys, epoch = topic_keys(_TOPIC, None), epoch_of(START)
    return Beside(hint(keys, peer, ours), epoch, proof(keys, peer, epoch), True)


def _records(effects: Iterable[object]) -> list[Record]:
    return [effect for effect in effects if isinstance(effect, Record)]


def _unchecked(descriptor: Descriptor, now: float) -> None:
    """Accept every descriptor: checking all signatures of invented keys takes time and finds nothing."""


_LIARS = 0.1
_FAIR = 1.5
"""By how much liars may exceed their fair share."""
_VICTIMS = 8
_WALKERS = 2048
_ADOPTED = 16
_BURST = 10.0
"""Seconds' worth of control messages that one peer may send at once."""


class AttackSize(Struct, frozen=True):
    """The sizes of the attacked networks."""

    nodes: int = 300
    """Nodes of a network whose peer sampling is attacked."""
    rounds: int = 200
    members: int = 200
    """Members of a ring with liars beside a victim."""
    events: int = 400
    """Events published on the ring after its members have noticed silent neighbours."""
    community: int = 15
    """Members of each of eight communities, where filters are forged."""
    overlay: int = 100
    """Nodes of a whole overlay in which some withhold events."""
    crowd: int = 3000
    """Peers that flood a node."""
    probers: int = 1000
    """Peers that try names of topics on a node for an hour."""
    seed: int = 1


SMALL = AttackSize(nodes=80, rounds=60, members=60, events=50, community=8, overlay=20, crowd=300, probers=60)
"""For a quick look, in seconds."""


class AttackRow(Struct, frozen=True):
    """One measured number with its bound."""

    attack: str
    measure: str
    value: float
    bound: float
    is_most: bool
    """Whether the bound is an upper one; otherwise it is a lower one."""

    @property
    def holds(self) -> bool:
        """Whether the number keeps its bound."""
        return self.value <= self.bound if self.is_most else self.value >= self.bound


def eclipse(size: AttackSize) -> Iterator[AttackRow]:
    """Let a tenth of all nodes name each other alone, and all of them ask one victim over and over."""
    plan = AttackPlan(
        nodes=size.nodes,
        liars=round(_LIARS * size.nodes),
        rounds=size.rounds,
        attack=Attack.ECLIPSE,
        seed=size.seed,
    )
    figures = AttackBench(shipped(TrackerlessConfig()), plan).run()
    late = figures[len(figures) // 2 :]
    victim = sum(each.victim_lying for each in late) / max(1, sum(each.victim_places for each in late))
    everyone = sum(each.lying for each in late) / max(1, sum(each.places for each in late))
    name = "eclipse of one victim"
    yield AttackRow(name, "liars' share of all views, second half", everyone, _FAIR * _LIARS, True)
    yield AttackRow(name, "liars' share of the victim's view, second half", victim, 0.3, True)
    worst = max(each.victim_share for each in figures)
    yield AttackRow(name, "liars' share of the victim's view, at its worst", worst, 0.5, True)
    yield AttackRow(name, "nodes that know liars alone", max(each.isolated for each in figures), 0, True)


def poisoned_rings(size: AttackSize) -> Iterator[AttackRow]:
    """Put a liar on each side of a victim; both take part in all gossip and pass nothing on."""
    before = after = 0
    for number in range(_VICTIMS):
        ring = LargeRing(RingPlan(nodes=size.members, seed=size.seed + number))
        luck = named_luck(size.seed, f"poisoned/{number}")
        victim = luck.randrange(size.members)
        ring.silence((victim - 1, victim + 1))
        beside = ((victim - 1) % size.members, victim, (victim + 1) % size.members)
        honest = [place for place in range(size.members) if place not in beside]
        hits = [victim in ring.reached(luck.choice(honest)) for _ in range(2 * QUIET + size.events)]
        before += sum(hits[:QUIET])
        after += sum(hits[-size.events :])
    name = "poisoned ring"
    share = before / (_VICTIMS * QUIET)
    yield AttackRow(name, f"victim's hit ratio by shortcuts, first {QUIET} events", share, 0.7, False)
    share = after / (_VICTIMS * size.events)
    yield AttackRow(name, "victim's hit ratio once both neighbours are known to be quiet", share, 0.99, False)


def guesses(config: TrackerlessConfig, seconds: float = HOUR) -> int:
    """Return how many names of topics all other nodes together can test on a node in this time, by runs they
    begin."""
    return POINTS * config.intersect_inbound * -int(-seconds // HOUR)


def intersection_probing(size: AttackSize) -> Iterator[AttackRow]:
    """Let very many peers test names of topics on one node for an hour, and then one peer alone."""
    config = TrackerlessConfig()
    for probers, label, bound in (
        (size.probers, "by all together", guesses(config)),
        (1, "by one alone", POINTS * int(HOUR // config.intersect_pause)),
    ):
        ours = PeerId(sha256(b"probed").digest())
        victim = Intersections(ours, config, IDEAL, SeededEntropy(size.seed, "probed"))
        topics = [topic_keys(TopicId(sha256(b"%d" % number).digest()), None) for number in range(20)]
        army = [PeerId(sha256(b"prober %d" % number).digest()) for number in range(probers)]
        probe = _probe(army[0], ours, config, size.seed)
        answered = 0
        for second in range(int(HOUR)):
            peer = army[second % probers]
            asked = structs.replace(probe, nonce=second.to_bytes(16, "big"))
            step = victim.handle_intersect(peer, asked, topics, START + second)
            answered += len(step.send.twice) if isinstance(step.send, Intersected) else 0
        yield AttackRow("intersection probing", f"guesses answered in an hour {label}", answered, bound, True)


def _probe(peer: PeerId, victim: PeerId, config: TrackerlessConfig, seed: int) -> Intersect:
    """Make a question with as many guesses as are allowed."""
    prober = Intersections(peer, config, IDEAL, SeededEntropy(seed, "prober"))
    guessed = [topic_keys(TopicId(sha256(b"%d" % number).digest()), None) for number in range(POINTS)]
    step = prober.begin_run(victim, guessed, START)
    if not isinstance(step.send, Intersect):
        raise TypeError("a first question was refused")
    return step.send


def filter_forgery(size: AttackSize) -> Iterator[AttackRow]:
    """Let some nodes show filters that are made for being chosen, and name each other alone."""
    for forgery in Forgery:
        figures = measure_forgery(ForgeryPlan(forgery, members=size.community, seed=size.seed))
        measure = f"views with one forger over the mean, {forgery}"
        yield AttackRow("filter forgery", measure, figures.ratio, 3.0, True)


def withheld_events(size: AttackSize) -> Iterator[AttackRow]:
    """Let a tenth of all nodes take part in everything, pass no event on, and name liars alone."""
    scenario = OverlayScenario(
        nodes=size.overlay,
        topics=max(2, size.overlay // 10),
        subscriptions=max(2, size.overlay // 25),
        liars=_LIARS,
        churn=0.0,
        rounds=20,
        warmup=60,
        repair=20,
        events=5,
        friends=0,
        seed=size.seed,
    )
    report = run_overlay(scenario)
    name = "withheld events"
    yield AttackRow(name, "hit ratio before any repair", report.hit_ratio, 0.97, False)
    yield AttackRow(name, "hit ratio after repair", report.hit_ratio_after_repair, 0.9999, False)


def floods(size: AttackSize) -> Iterator[AttackRow]:
    """Let one peer send as much as its link takes, and a crowd ask one node for everything at once."""
    config = TrackerlessConfig()
    name = "flood"
    one = flood_of_one(seed=size.seed)
    most = _BURST * LinkConfig().control_rate
    yield AttackRow(name, "messages of one peer until it is cut off", one.taken, most, True)
    yield AttackRow(name, "records about it", one.records, most + 2, True)
    crowd = flood_of_many(size.crowd, size.seed)
    yield AttackRow(name, "acquaintances", crowd.acquaintances, LIMIT, True)
    yield AttackRow(name, "peers in the sample", crowd.sample, config.view, True)
    yield AttackRow(name, "searches remembered", crowd.walkers, _WALKERS, True)
    ring = 2 * config.spares + config.shortcuts
    yield AttackRow(name, "neighbours in one topic", crowd.neighbors, _ADOPTED + ring, True)
    yield AttackRow(name, "refusals without a name or a reason", crowd.unnamed, 0, True)


ATTACKS: tuple[Callable[[AttackSize], Iterator[AttackRow]], ...] = (
    eclipse,
    poisoned_rings,
    intersection_probing,
    filter_forgery,
    withheld_events,
    floods,
)


def attack_rows(size: AttackSize | None = None) -> list[AttackRow]:
    """Run all attacks, one after the other."""
    return [row for attack in ATTACKS for row in attack(size or AttackSize())]
