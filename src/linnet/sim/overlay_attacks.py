"""Attacks on an overlay without trackers, each with a number and the bound that it must keep.

All of them run the machines that ship; the ways of each are told where it is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256

from msgspec import Struct, structs

from linnet.core.ids import PeerId, TopicId
from linnet.overlay.trackerless.acquaintances import LIMIT
from linnet.overlay.trackerless.config import TrackerlessConfig
from linnet.overlay.trackerless.intersecting import HOUR, Intersecting, guesses
from linnet.overlay.trackerless.messages import POINTS, Intersect, Intersected
from linnet.overlay.trackerless.ring import QUIET
from linnet.overlay.trackerless.tags import topic_keys
from linnet.peer.config import LinkConfig
from linnet.sim.clock import START
from linnet.sim.floods import flood_of_many, flood_of_one
from linnet.sim.forged_filters import Forgery, ForgeryPlan, measure_forgery
from linnet.sim.ideal_group import IDEAL
from linnet.sim.luck import SeededEntropy, named_luck
from linnet.sim.overlay import run_overlay
from linnet.sim.overlay_report import OverlayScenario
from linnet.sim.ring_spread import LargeRing, RingPlan
from linnet.sim.sampling_attacks import Attack, AttackBench, AttackPlan, shipped

_LIARS = 0.1
_FAIR = 1.5
"""How much more than their fair share liars may come to."""
_VICTIMS = 8
_WALKERS = 2048
_ADOPTED = 16
_BURST = 10.0
"""Seconds' worth of control messages that one peer may send at once."""


class AttackSize(Struct, frozen=True):
    """How large the networks are that are attacked."""

    nodes: int = 300
    """Of a network whose peer sampling is attacked."""
    rounds: int = 200
    members: int = 200
    """Of a ring with liars beside a victim."""
    events: int = 400
    """Published on it, after its members have noticed who is quiet."""
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
"""For a look, in seconds."""


class AttackRow(Struct, frozen=True):
    """One number."""

    attack: str
    measure: str
    value: float
    bound: float
    is_most: bool
    """Whether the bound is the most that is allowed; otherwise it is the least."""

    @property
    def holds(self) -> bool:
        """Whether the bound is kept."""
        return self.value <= self.bound if self.is_most else self.value >= self.bound


def eclipse(size: AttackSize) -> Iterator[AttackRow]:
    """A tenth of all nodes name each other alone, and all ask one victim over and over."""
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
    """Two stand beside a victim, one on each side, take part in all gossip and pass nothing on."""
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


def intersection_probing(size: AttackSize) -> Iterator[AttackRow]:
    """Very many peers try names of topics on one node for an hour, and one alone does."""
    config = TrackerlessConfig()
    for probers, label, bound in (
        (size.probers, "by all together", guesses(config)),
        (1, "by one alone", POINTS * int(HOUR // config.intersect_pause)),
    ):
        ours = PeerId(sha256(b"probed").digest())
        victim = Intersecting(ours, config, IDEAL, SeededEntropy(size.seed, "probed"))
        topics = [topic_keys(TopicId(sha256(b"%d" % number).digest()), None) for number in range(20)]
        army = [PeerId(sha256(b"prober %d" % number).digest()) for number in range(probers)]
        probe = _probe(army[0], ours, config, size.seed)
        answered = 0
        for second in range(int(HOUR)):
            peer = army[second % probers]
            asked = structs.replace(probe, nonce=second.to_bytes(16, "big"))
            step = victim.asked(peer, asked, topics, START + second)
            answered += len(step.send.twice) if isinstance(step.send, Intersected) else 0
        yield AttackRow("intersection probing", f"guesses answered in an hour {label}", answered, bound, True)


def _probe(peer: PeerId, victim: PeerId, config: TrackerlessConfig, seed: int) -> Intersect:
    """A question with as many guesses as there may be."""
    prober = Intersecting(peer, config, IDEAL, SeededEntropy(seed, "prober"))
    guessed = [topic_keys(TopicId(sha256(b"%d" % number).digest()), None) for number in range(POINTS)]
    step = prober.begin(victim, guessed, START)
    if not isinstance(step.send, Intersect):
        raise TypeError("a first question was refused")
    return step.send


def filter_forgery(size: AttackSize) -> Iterator[AttackRow]:
    """Some show filters that are made for being chosen, and name each other alone."""
    for forgery in Forgery:
        figures = measure_forgery(ForgeryPlan(forgery, members=size.community, seed=size.seed))
        measure = f"views with one forger over the mean, {forgery}"
        yield AttackRow("filter forgery", measure, figures.ratio, 3.0, True)


def withheld_events(size: AttackSize) -> Iterator[AttackRow]:
    """A tenth of all nodes takes part in everything, passes no event on, and lies about who there is."""
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
    """One peer sends all that its link takes; and a crowd asks one node for everything at once."""
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
    """All attacks, one after the other."""
    return [row for attack in ATTACKS for row in attack(size or AttackSize())]
