"""The neighbours of a stream that keep its events to themselves, beside honest ones.

Keys are free: an attacker joins a stream with as many nodes as it likes, follows the tracker, answers pings,
takes the places of neighbours, and passes nothing on. Each honest node reads the stream; some publish. The
same world runs a second time without the attackers.

Where nodes are only slow, asleep at times or lossy, nobody attacks: then the question is whether an honest
node is blamed for what it cannot help.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct

from linnet.core.effects import Deliver
from linnet.core.ids import Contact, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.event.event import Event
from linnet.overlay.config import DEFAULT_DEGREE
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.interface import Handed, Start
from linnet.peer.peer import Peer
from linnet.sim.attacks.conduct import Conduct, SendingNode, trouble, withhold
from linnet.sim.attacks.figures import AttackFigures
from linnet.sim.clock import START
from linnet.sim.links import LinkModel, named_latency
from linnet.sim.network import Network
from linnet.sim.report import Progress, RunReport, tell_nobody
from linnet.sim.seeded_random import named_luck, seeded_identity
from linnet.sim.signature_cache import RememberingCardCheck, RememberingVerifier
from linnet.sim.streams.course import HashedTrace
from linnet.store.memory import MemoryStore
from linnet.streams.commands import Publish, Subscribe
from linnet.streams.config import StreamOptions
from linnet.trace.columns import ColumnTrace
from linnet.trace.records import Kind, NullTrace, Record, TraceSink

STREAM = "simulation"
HINTS = ("sim://node",)
_SUBSCRIPTION = 1
_FIRST_JOIN = 1.0
"""Virtual second of the first join; the tracker starts before."""

Notices = Callable[[Record], bool]
"""Tells whether a record is of a certain kind."""

BLAMES = (Reason.FORGING, Reason.FLOODING, Reason.REPLAYING)
"""The reasons of records that blame the peer that they name."""


def tells_of_a_loss(record: Record) -> bool:
    """Return whether the reader of whom this record is was told that it may lack events."""
    return record.reason is Reason.GAP_UNFILLED


def blames_a_peer(record: Record) -> bool:
    """Return whether a record blames the peer that it names."""
    return record.reason in BLAMES and record.peer is not None


class Order(StrEnum):
    """When the attackers join."""

    BEFORE = "before"
    AFTER = "after"
    AMONG = "among"
    """In between, in an order that the seed draws."""


class StreamAttack(Struct, frozen=True):
    """Honest nodes of one stream with one tracker, and the nodes among them that behave otherwise."""

    conduct: Conduct = Conduct.SILENT
    share: float = 0.5
    """The share of all nodes that attack; of troubled nodes, the share of the honest ones."""
    order: Order = Order.AFTER
    honest: int = 24
    crowding: bool = False
    """Whether attackers tell the tracker that links among themselves fail, so that it gives them honest
    neighbours alone."""
    publishers: int = 1
    """Honest nodes that publish, in turn; each honest node reads."""
    messages: int = 60
    gap: float = 1.0
    """Seconds between two events."""
    networks: int = 0
    """Networks (address prefixes) from which the attackers come; 0: each from one of its own."""
    degree: int = DEFAULT_DEGREE
    latency: str = "aws"
    seed: int = 1
    awake: float = 30.0
    """Sleepers: seconds from the first event for which they forward."""
    favoured: float = 0.5
    """Selective attackers: the share of the honest nodes that they serve."""
    join: float = 0.1
    """Seconds between joins."""
    settle: float = 20.0
    """Seconds after the joins of one group, before the other joins, and before the first event."""
    patience: float = 30.0
    """Seconds in which an event is due at a reader; the run ends so long after the last event."""

    @property
    def attackers(self) -> int:
        """The number of attacking nodes."""
        return round(self.honest * self.share / (1.0 - self.share)) if self.conduct.is_hostile else 0

    @property
    def troubled(self) -> int:
        """The number of honest nodes in trouble."""
        return 0 if self.conduct.is_hostile else round(self.honest * self.share)


class Witness:
    """Passes records on to a trace, and notes what honest nodes published, were told and blamed."""

    def __init__(self, trace: TraceSink, told: Notices, blames: Notices) -> None:
        self._pass_on = trace.write
        self.close = trace.close
        self._tells = told
        self._blames = blames
        self.honest: dict[PeerId, None] = {}
        self.published: dict[EventId, tuple[PeerId, float]] = {}
        self.delivered: dict[tuple[EventId, PeerId], float] = {}
        """When the application of a node was first handed an event."""
        self.told: dict[PeerId, list[float]] = {}
        """When nodes were told that they may lack events."""
        self.blamed: dict[PeerId, int] = {}
        """How often honest nodes blamed whom."""

    def write(self, node: PeerId, record: Record, now: float) -> None:
        """Handle a record, see `TraceSink.write`."""
        self._pass_on(node, record, now)
        if node not in self.honest:
            return
        if record.kind is Kind.PUBLISHED and record.event is not None:
            self.published[record.event] = (node, now)
        elif self._tells(record):
            self.told.setdefault(node, []).append(now)
        if record.peer is not None and self._blames(record):
            self.blamed[record.peer] = self.blamed.get(record.peer, 0) + 1

    def deliver(self, node: PeerId, effect: Deliver[Handed], now: float) -> None:
        """Note the events that an application is handed."""
        for item in effect.items:
            if isinstance(item, Event):
                self.delivered.setdefault((item.id, node), now)


class AttackedStream:
    """The world of one scenario: a tracker, the honest nodes, and the others."""

    def __init__(
        self,
        scenario: StreamAttack,
        trace: TraceSink,
        told: Notices,
        blames: Notices,
        is_attacked: bool = True,
    ) -> None:
        self.scenario = scenario
        self.witness = Witness(trace, told, blames)
        self.network = Network(scenario.seed, LinkModel(named_latency(scenario.latency)), self.witness)
        self._verifier = RememberingVerifier()
        self._card_check = RememberingCardCheck()
        self._regions = named_luck(scenario.seed, "places")
        self._stores: dict[PeerId, MemoryStore] = {}
        self._tracker = self._identity("tracker")
        self.nodes: dict[PeerId, SendingNode] = {}
        """Every node but the tracker, with the count of its bytes."""
        attackers = scenario.attackers if is_attacked else 0
        self.honest = [self._identity(f"node {number}") for number in range(scenario.honest)]
        self.hostile = [self._identity(f"attacker {number}") for number in range(attackers)]
        self.witness.honest.update((each.peer, None) for each in self.honest)
        joins = self._joins()
        end = max(joins.values())
        self.first_event = end + scenario.settle
        """Virtual second of the first event."""
        self._make(is_attacked)
        self.network.ask(self._tracker.peer, Start(), at=0.0)
        for peer, at in joins.items():
            self.network.ask(peer, Start(), at=at)
            self.network.ask(peer, Subscribe(_SUBSCRIPTION, STREAM, None), at=at)

    def _identity(self, name: str) -> Identity:
        return seeded_identity(self.scenario.seed, name, START)

    def _joins(self) -> dict[PeerId, float]:
        """Return when each node joins; honest ones join in the same order with attackers and without."""
        scenario = self.scenario
        honest, hostile = [each.peer for each in self.honest], [each.peer for each in self.hostile]
        if scenario.order is Order.AMONG:
            groups = [honest + hostile]
            named_luck(scenario.seed, "joins").shuffle(groups[0])
        else:
            groups = [honest, hostile] if scenario.order is Order.AFTER else [hostile, honest]
        joins: dict[PeerId, float] = {}
        at = _FIRST_JOIN
        for number, group in enumerate(each for each in groups if each):
            at += scenario.settle if number else 0.0
            for peer in group:
                joins[peer] = at
                at += scenario.join
        return joins

    def _make(self, is_attacked: bool) -> None:
        scenario = self.scenario
        seed = scenario.seed
        luck = named_luck(seed, "roles")
        favoured = luck.sample(
            [each.peer for each in self.honest], round(scenario.honest * scenario.favoured)
        )
        silent_from = START + self.first_event + scenario.awake
        troubled = luck.sample(range(scenario.honest), scenario.troubled if is_attacked else 0)
        self._add(self._tracker, "tracker", SendingNode(self._peer(self._tracker)))
        for number, each in enumerate(self.honest):
            node: SendingNode = SendingNode(self._peer(each))
            if number in troubled:
                node = trouble(scenario.conduct, self._peer(each), named_luck(seed, f"trouble {number}"))
            self.nodes[each.peer] = node
            self._add(each, f"honest {number}", node)
        hostile = dict.fromkeys(each.peer for each in self.hostile)
        served = dict.fromkeys(favoured) | hostile
        fellows = hostile if scenario.crowding else {}
        for number, each in enumerate(self.hostile):
            node = withhold(scenario.conduct, self._peer(each), served, silent_from, fellows)
            self.nodes[each.peer] = node
            origin = number % scenario.networks if scenario.networks else number
            self._add(each, f"hostile {origin}", node)

    def _add(self, identity: Identity, prefix: str, node: SendingNode) -> None:
        region = self._regions.choice(self.network.table.regions)
        self.network.add(
            identity.peer,
            node,
            region=region,
            deliver=self.witness.deliver if identity.peer in self.witness.honest else None,
            store=self._stores[identity.peer],
            prefix=prefix,
        )

    def _peer(self, identity: Identity) -> Peer:
        is_tracker = identity is self._tracker
        config = PeerConfig(
            listens=HINTS,
            trackers=(Contact(self._tracker.peer, HINTS),),
            is_tracker=is_tracker,
            streams={STREAM: StreamOptions(self.scenario.degree)},
        )
        luck = named_luck(self.scenario.seed, identity.card.label)
        store = self._stores[identity.peer] = MemoryStore()
        return Peer(config, identity, store, luck, self._verifier, self._card_check)

    def run(self, progress: Progress = tell_nobody) -> None:
        """Let all events be published, and time pass until the last one is due."""
        scenario = self.scenario
        publishers = named_luck(scenario.seed, "publishers").sample(self.honest, scenario.publishers)
        for number in range(scenario.messages):
            at = self.first_event + number * scenario.gap
            body = b"event %d" % number
            self.network.ask(publishers[number % scenario.publishers].peer, Publish(STREAM, (body,)), at=at)
        end = self.first_event + (scenario.messages - 1) * scenario.gap + scenario.patience
        steps = 20
        for step in range(1, steps + 1):
            self.network.run(end * step / steps)
            progress(step / steps, "events are published")

    def sent_by(self, identities: list[Identity]) -> int:
        """Return the bytes that these nodes sent."""
        return sum(self.nodes[each.peer].bytes for each in identities)

    def delays(self) -> list[float | None]:
        """Return the seconds of each due delivery; None: it did not come."""
        witness = self.witness
        return [
            None if (at := witness.delivered.get((event, each.peer))) is None else at - published
            for event, (publisher, published) in witness.published.items()
            for each in self.honest
            if each.peer != publisher
        ]

    def lacking(self) -> dict[PeerId, float]:
        """Return the readers that did not get some event in time, with the second of the first of those."""
        witness, lacking = self.witness, dict[PeerId, float]()
        for event, (publisher, published) in witness.published.items():
            for each in self.honest:
                at = witness.delivered.get((event, each.peer))
                if each.peer != publisher and (at is None or at - published > self.scenario.patience):
                    lacking.setdefault(each.peer, published)
        return lacking


class StreamAttackReport(RunReport, frozen=True, eq=False):
    """The outcome of one attack on a stream."""

    figures: AttackFigures
    order: Order
    readers: int
    attackers: int
    cut_off: int
    """Readers that did not get some event within `StreamAttack.patience`."""
    got_nothing: int
    """Readers that got no event at all."""
    cut_off_told: int
    """Those of them that were told that they may lack events, once they did."""
    slowest_told_seconds: float | None
    """The longest time from the first event that a reader lacks until it was told; None: nobody was cut off,
    or somebody was not told."""
    honest_blamed: int
    """Honest nodes that honest nodes blamed."""
    hostile_blamed: int
    """Attackers that honest nodes blamed."""
    honest_bytes_without: int
    """The bytes that the honest nodes sent without the attack."""
    virtual_seconds: float
    trace_sha256: str
    wall_seconds: float


def run_stream_attack(
    scenario: StreamAttack,
    trace: HashedTrace | None = None,
    progress: Progress = tell_nobody,
    *,
    told: Notices = tells_of_a_loss,
    blames: Notices = blames_a_peer,
) -> StreamAttackReport:
    """Run a scenario with the attack and without it, and report. Equal scenarios give equal reports."""
    began = time.perf_counter()
    kept = ColumnTrace() if trace is None else trace
    world = AttackedStream(scenario, kept, told, blames)
    world.run(lambda done, what: progress(0.7 * done, what))
    calm = AttackedStream(scenario, NullTrace(), told, blames, is_attacked=False)
    calm.run(lambda done, what: progress(0.7 + 0.3 * done, "the same without the attack"))
    witness, lacking = world.witness, world.lacking()
    notices = {
        peer: min((at for at in witness.told.get(peer, ()) if at >= since), default=None)
        for peer, since in lacking.items()
    }
    waits = [at - lacking[peer] for peer, at in notices.items() if at is not None]
    reached = {peer for _, peer in witness.delivered}
    publishers = {publisher for publisher, _ in witness.published.values()}
    return StreamAttackReport(
        figures=_figures(world, calm),
        order=scenario.order,
        readers=sum(each.peer not in publishers or len(publishers) > 1 for each in world.honest),
        attackers=scenario.attackers,
        cut_off=len(lacking),
        got_nothing=sum(each.peer not in reached and each.peer not in publishers for each in world.honest),
        cut_off_told=len(waits),
        slowest_told_seconds=max(waits) if waits and len(waits) == len(lacking) else None,
        honest_blamed=sum(peer in witness.honest for peer in witness.blamed),
        hostile_blamed=sum(each.peer in witness.blamed for each in world.hostile),
        honest_bytes_without=calm.sent_by(calm.honest),
        virtual_seconds=world.network.elapsed,
        trace_sha256=kept.sha256(),
        wall_seconds=time.perf_counter() - began,
    )


def _figures(world: AttackedStream, calm: AttackedStream) -> AttackFigures:
    scenario, witness = world.scenario, world.witness
    delays = world.delays()
    came = [delay for delay in delays if delay is not None]
    first_lie = START + world.first_event
    if scenario.conduct is Conduct.SLEEPER:
        first_lie += scenario.awake
    told = [at for times in witness.told.values() for at in times if at >= first_lie]
    return AttackFigures(
        attack=scenario.conduct.value,
        share=scenario.share,
        honest_due=len(delays),
        delivered=_in_time(delays, scenario.patience),
        delivered_without=_in_time(calm.delays(), scenario.patience),
        worst_seconds=max(came, default=0.0),
        told_after_seconds=min(told) - first_lie if told else None,
        attacker_bytes=world.sent_by(world.hostile),
        honest_bytes=world.sent_by(world.honest),
    )


def _in_time(delays: list[float | None], patience: float) -> int:
    return sum(delay is not None and delay <= patience for delay in delays)
