"""The neighbours of a stream that keep its events to themselves, beside honest ones.

Keys are free: an attacker joins a stream with as many nodes as it likes, follows the tracker, answers pings,
takes the places of neighbours, and passes nothing on. Each honest node reads the stream; some publish. The
same world runs a second time without the attackers.

Where nodes are only slow, asleep at times or lossy, nobody attacks: then the question is whether an honest
node is blamed for what it cannot help.
"""

from __future__ import annotations

import time
from enum import StrEnum

from msgspec import Struct

from linnet.core.ids import PeerId
from linnet.overlay.config import DEFAULT_DEGREE
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.peer import Peer
from linnet.sim.attacks.conduct import Conduct, SendingNode, trouble, withhold
from linnet.sim.attacks.figures import AttackFigures
from linnet.sim.attacks.stream_nodes import (
    HINTS,
    PATIENCE,
    STREAM,
    Notices,
    StreamNodes,
    blames_a_peer,
    measure_attack,
    tells_of_a_loss,
)
from linnet.sim.clock import START
from linnet.sim.report import Progress, RunReport, tell_nobody
from linnet.sim.seeded_random import named_luck
from linnet.sim.streams.course import HashedTrace
from linnet.streams.config import StreamOptions
from linnet.trace.columns import ColumnTrace
from linnet.trace.records import TraceSink

_FIRST_JOIN = 1.0
"""Virtual second of the first join; the tracker starts before."""
_STEPS = 20
"""Parts in which a run tells how far it is."""


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
    patience: float = PATIENCE
    """Seconds in which an event is due at a reader; the run ends so long after the last event."""

    @property
    def name(self) -> str:
        """The name of the attack."""
        return "crowding" if self.crowding else self.conduct.value

    @property
    def attackers(self) -> int:
        """The number of attacking nodes."""
        return round(self.honest * self.share / (1.0 - self.share)) if self.conduct.is_hostile else 0

    @property
    def troubled(self) -> int:
        """The number of honest nodes in trouble."""
        return 0 if self.conduct.is_hostile else round(self.honest * self.share)


class AttackedStream(StreamNodes):
    """The world of one scenario: a tracker, the honest nodes, and the others."""

    def __init__(
        self,
        scenario: StreamAttack,
        trace: TraceSink | None = None,
        told: Notices = tells_of_a_loss,
        blames: Notices = blames_a_peer,
        *,
        is_attacked: bool = True,
    ) -> None:
        super().__init__(scenario.seed, trace, latency=scenario.latency, told=told, blames=blames)
        self.scenario = scenario
        self.begin_tracker(lambda each: self._machine(each, is_tracker=True))
        attackers = scenario.attackers if is_attacked else 0
        honest = [self.identity(f"node {number}") for number in range(scenario.honest)]
        hostile = [self.identity(f"attacker {number}") for number in range(attackers)]
        joins = self._joins(honest, hostile)
        self.first_event = max(joins.values()) + scenario.settle
        """Virtual second of the first event."""
        self._add_honest(honest, scenario.troubled if is_attacked else 0)
        self._add_hostile(hostile)
        for each in (*honest, *hostile):
            self.join(each, joins[each.peer])

    def _joins(self, honest: list[Identity], hostile: list[Identity]) -> dict[PeerId, float]:
        """Return when each node joins; honest ones join in the same order with attackers and without."""
        scenario = self.scenario
        if scenario.order is Order.AMONG:
            groups = [honest + hostile]
            named_luck(scenario.seed, "joins").shuffle(groups[0])
        else:
            groups = [honest, hostile] if scenario.order is Order.AFTER else [hostile, honest]
        joins: dict[PeerId, float] = {}
        at = _FIRST_JOIN
        for number, group in enumerate(each for each in groups if each):
            at += scenario.settle if number else 0.0
            for identity in group:
                joins[identity.peer] = at
                at += scenario.join
        return joins

    def _add_honest(self, honest: list[Identity], troubled: int) -> None:
        seed = self.scenario.seed
        unlucky = named_luck(seed, "troubled").sample(range(len(honest)), troubled)
        for number, each in enumerate(honest):
            machine = self._machine(each)
            node = SendingNode(machine)
            if number in unlucky:
                node = trouble(self.scenario.conduct, machine, named_luck(seed, f"trouble {number}"))
            self.add_honest(each, node)

    def _add_hostile(self, hostile: list[Identity]) -> None:
        scenario = self.scenario
        keys = dict.fromkeys(each.peer for each in hostile)
        luck = named_luck(scenario.seed, "favoured")
        favoured = luck.sample(list(self.witness.honest), round(scenario.honest * scenario.favoured))
        silent_from = START + self.first_event + scenario.awake
        fellows = keys if scenario.crowding else {}
        for each in hostile:
            machine = self._machine(each)
            served = keys | dict.fromkeys(favoured if scenario.conduct is Conduct.SELECTIVE else ())
            node = withhold(scenario.conduct, machine, served, silent_from, fellows)
            self.add_hostile(each, node, scenario.networks)

    def _machine(self, identity: Identity, *, is_tracker: bool = False) -> Peer:
        config = PeerConfig(
            listens=HINTS,
            trackers=self.trackers,
            is_tracker=is_tracker,
            streams={STREAM: StreamOptions(self.scenario.degree)},
        )
        return self.machine(identity, config)

    @property
    def first_lie(self) -> float:
        """Virtual second from which attackers keep events to themselves."""
        is_asleep = self.scenario.conduct is Conduct.SLEEPER
        return self.first_event + (self.scenario.awake if is_asleep else 0.0)

    def run(self, progress: Progress = tell_nobody) -> None:
        """Let all events be published, and time pass until the last one is due."""
        scenario = self.scenario
        publishers = named_luck(scenario.seed, "publishers").sample(self.honest, scenario.publishers)
        for number in range(scenario.messages):
            at = self.first_event + number * scenario.gap
            self.publish(publishers[number % scenario.publishers], number, at)
        end = self.first_event + (scenario.messages - 1) * scenario.gap + scenario.patience
        for step in range(1, _STEPS + 1):
            self.network.run(end * step / _STEPS)
            progress(step / _STEPS, "events are published")


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
    calm = AttackedStream(scenario, None, told, blames, is_attacked=False)
    calm.run(lambda done, what: progress(0.7 + 0.3 * done, "the same without the attack"))
    witness, lacking = world.witness, world.lacking(scenario.patience)
    notices = {
        peer: min((at for at in witness.told.get(peer, ()) if at >= since), default=None)
        for peer, since in lacking.items()
    }
    waits = [at - lacking[peer] for peer, at in notices.items() if at is not None]
    reached = {peer for _, peer in witness.delivered}
    publishers = {publisher for publisher, _ in witness.published.values()}
    return StreamAttackReport(
        figures=measure_attack(
            scenario.name, scenario.share, world, calm, world.first_lie, scenario.patience
        ),
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
