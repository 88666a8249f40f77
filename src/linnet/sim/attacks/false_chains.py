"""Chains that are not what they seem: two events under one number, and chains that do not exist.

Who forks its chain tells each half of its neighbours something else. Who claims chains sends heads of authors
that it invents, as many as fit, to all of its neighbours: unsigned, and cheap to make.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from linnet.core.effects import Send, SetTimer
from linnet.core.ids import AuthorId, DeviceId, EventId, PeerId, TopicId
from linnet.core.inputs import LinkDown, LinkUp, TimerFired
from linnet.core.limits import CHAINS_PER_MESSAGE
from linnet.core.messages import Message
from linnet.core.timers import Timer
from linnet.delivery.messages import ChainPlace, Data, Heads
from linnet.event.event import Spot
from linnet.event.signing import message_tail, sign_unit
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.interface import Effect, Input, NodeMachine
from linnet.peer.peer import Peer
from linnet.sim.attacks.conduct import SendingNode
from linnet.sim.attacks.figures import AttackFigures
from linnet.sim.attacks.stream_nodes import (
    HINTS,
    PATIENCE,
    STREAM,
    Notices,
    StreamNodes,
    measure_attack,
    tells_of_a_loss,
)
from linnet.sim.clock import START
from linnet.sim.seeded_random import SeededEntropy
from linnet.streams.stream_names import topic_of
from linnet.trace.records import TraceSink

_FIRST_EVENT = 20.0


class Falsehood(StrEnum):
    """What the attackers do."""

    FORK = "fork"
    """One of them publishes, and signs two events under each number."""
    CLAIM = "claim"
    """They claim chains that do not exist, from the first event on."""


class ChainAttack(Struct, frozen=True):
    """Honest nodes of one stream, and who lies about chains."""

    falsehood: Falsehood = Falsehood.FORK
    honest: int = 12
    attackers: int = 1
    messages: int = 30
    gap: float = 1.0
    claims: int = 128
    """Messages of heads that a claimant sends to each neighbour, with as many chains as fit in one."""
    claims_second: int = 64
    """So many of them a second."""
    seed: int = 1

    @property
    def share(self) -> float:
        """The share of all nodes that attack."""
        return self.attackers / (self.attackers + self.honest)


class ForkingNode(SendingNode):
    """A publisher that signs every event twice, and shows one to each second of its neighbours."""

    def __init__(self, machine: NodeMachine, identity: Identity) -> None:
        super().__init__(machine)
        self._identity = identity
        self._sides: dict[PeerId, bool] = {}
        """For each neighbour whether it is shown the other version."""
        self._others: dict[int, Data] = {}
        self._last: EventId | None = None

    def choose_message(self, peer: PeerId, message: Message, now: float) -> Message | None:
        """See `SendingNode.choose_message`."""
        if not isinstance(message, Data) or message.unit.device != self._identity.card.device:
            return message
        is_other = self._sides.setdefault(peer, len(self._sides) % 2 == 1)
        return replace(self._other(message, now), card=message.card) if is_other else message

    def _other(self, message: Data, now: float) -> Data:
        unit = message.unit
        number = unit.seq or 0
        if number not in self._others:
            spot = Spot(unit.topic, unit.author, unit.device, number, self._last)
            tail = message_tail(b"another %d" % number, int(now * 1000))
            signed = sign_unit(self._identity.device, spot, (tail,))
            self._last = signed.head
            self._others[number] = replace(message, unit=signed.unit)
        return self._others[number]


class ClaimDue(Timer, frozen=True):
    """Fires when a claimant sends its next message of heads to all."""


class ClaimingNode(SendingNode):
    """A node that invents authors, and tells all of its neighbours that they have published."""

    def __init__(self, machine: NodeMachine, topic: TopicId, entropy: SeededEntropy, begins: float) -> None:
        super().__init__(machine)
        self._topic = topic
        self._entropy = entropy
        self._begins = begins
        self._peers: dict[PeerId, None] = {}
        self._began = False
        self.left = 0
        """The messages that are still to be sent."""
        self.pause = 1.0

    def handle(self, event: Input, now: float) -> list[Effect]:
        """See `NodeMachine.handle`."""
        effects: list[Effect] = []
        if isinstance(event, TimerFired) and isinstance(event.timer, ClaimDue):
            self.left -= 1
            effects += self._sent([Send(peer, self._heads()) for peer in self._peers], now)
            return [*effects, SetTimer(self.pause, ClaimDue())] if self.left > 0 else effects
        if isinstance(event, LinkUp):
            self._peers[event.peer] = None
        elif isinstance(event, LinkDown):
            self._peers.pop(event.peer, None)
        effects = super().handle(event, now)
        if not self._began:
            self._began = True
            effects.append(SetTimer(max(0.0, self._begins - now), ClaimDue()))
        return effects

    def _heads(self) -> Heads:
        drawn = self._entropy
        chains = tuple(
            ChainPlace(AuthorId(drawn(32)), DeviceId(drawn(16)), 0, 1000, True)
            for _ in range(CHAINS_PER_MESSAGE)
        )
        return Heads(self._topic, chains)


class MisledReaders(StreamNodes):
    """The world of one scenario."""

    def __init__(
        self,
        scenario: ChainAttack,
        trace: TraceSink | None = None,
        *,
        told: Notices = tells_of_a_loss,
        is_attacked: bool = True,
    ) -> None:
        super().__init__(scenario.seed, trace, told=told)
        self.scenario = scenario
        self.begin_tracker(lambda each: self._machine(each, is_tracker=True))
        honest = [self.identity(f"node {number}") for number in range(scenario.honest)]
        for number, each in enumerate(honest):
            self.add_honest(each, SendingNode(self._machine(each)))
            self.join(each, 1.0 + 0.1 * number)
        for number in range(scenario.attackers if is_attacked else 0):
            attacker = self.identity(f"attacker {number}")
            self.add_hostile(attacker, self._attacker(attacker))
            self.join(attacker, 3.0)

    def _machine(self, identity: Identity, *, is_tracker: bool = False) -> Peer:
        config = PeerConfig(listens=HINTS, trackers=self.trackers, is_tracker=is_tracker)
        return self.machine(identity, config)

    def _attacker(self, identity: Identity) -> SendingNode:
        scenario, machine = self.scenario, self._machine(identity)
        if scenario.falsehood is Falsehood.FORK:
            return ForkingNode(machine, identity)
        entropy = SeededEntropy(scenario.seed, identity.card.label)
        node = ClaimingNode(machine, topic_of(STREAM), entropy, START + _FIRST_EVENT)
        node.left, node.pause = scenario.claims, 1.0 / scenario.claims_second
        return node

    def run(self) -> None:
        """Let events be published, and time pass until the last one is due."""
        scenario = self.scenario
        forks = scenario.falsehood is Falsehood.FORK
        publisher = self.hostile[0] if forks and self.hostile else self.honest[0]
        for number in range(scenario.messages):
            self.publish(publisher, number, _FIRST_EVENT + number * scenario.gap)
        self.network.run(_FIRST_EVENT + (scenario.messages - 1) * scenario.gap + PATIENCE)


class ChainAttackReport(Struct, frozen=True):
    """The outcome of one scenario, with the work that it makes."""

    figures: AttackFigures
    inputs: int
    """The inputs that the honest nodes handled."""
    inputs_without: int
    """The same without the attack."""
    records: int
    """The records that the honest nodes wrote."""
    records_without: int
    """The same without the attack."""


def run_chain_attack(scenario: ChainAttack, *, told: Notices = tells_of_a_loss) -> ChainAttackReport:
    """Run a scenario with the lies and without. Of a fork, what is due is its proof at every honest node."""
    world = MisledReaders(scenario, told=told)
    calm = MisledReaders(scenario, told=told, is_attacked=False)
    world.run()
    calm.run()
    figures = measure_attack(scenario.falsehood.value, scenario.share, world, calm, _FIRST_EVENT)
    if scenario.falsehood is Falsehood.FORK:
        waits = [at - START - _FIRST_EVENT for at in world.witness.forks.values()]
        figures = replace(
            figures,
            honest_due=len(world.honest),
            delivered=sum(wait <= PATIENCE for wait in waits),
            delivered_without=0,
            worst_seconds=max(waits, default=0.0),
            told_after_seconds=min(waits, default=None),
        )
    return ChainAttackReport(
        figures=figures,
        inputs=sum(world.nodes[each.peer].inputs for each in world.honest),
        inputs_without=sum(calm.nodes[each.peer].inputs for each in calm.honest),
        records=world.witness.records,
        records_without=calm.witness.records,
    )
