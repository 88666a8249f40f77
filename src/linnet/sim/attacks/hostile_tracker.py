"""A tracker that names the neighbours it likes: it isolates nodes, parts a stream in two, or favours some.

A node whose only tracker lies has only neighbours that the tracker chose. All others of this world are
honest, but for a few accomplices of the tracker that forward nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import Received
from linnet.core.messages import Message
from linnet.overlay.messages import Instruction, Members, Status
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.interface import Effect, Input, NodeMachine
from linnet.peer.peer import Peer
from linnet.sim.attacks.conduct import Conduct, SendingNode, withhold
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
from linnet.streams.config import StorageRule, StreamOptions
from linnet.trace.records import TraceSink

BESIDE_STORAGE = "-beside-storage"
"""Ends the name of an attack if there is an honest storage node."""

_SIDE = 2
"""The nodes to each side that an honest-looking ring names as neighbours."""


class Favour(StrEnum):
    """What a hostile tracker does."""

    ISOLATE = "isolate"
    """A quarter of the readers is given accomplices as neighbours, and nobody else."""
    PARTITION = "partition"
    """Each half of the nodes knows nobody of the other half."""
    FAVOUR = "favour"
    """A few nodes are beside the publisher; the others form a line behind it."""


class TrackerAttack(Struct, frozen=True):
    """One stream, whose tracker is hostile."""

    favour: Favour = Favour.ISOLATE
    honest: int = 24
    accomplices: int = 4
    storage: bool = False
    """Whether all nodes are configured with one storage node, an honest one."""
    messages: int = 30
    gap: float = 1.0
    settle: float = 30.0
    seed: int = 1


class HostileTracker(SendingNode):
    """A tracker that answers every node with the neighbours of its plan, and hears no complaint.

    Of other members it names nobody else either.
    """

    def __init__(self, machine: NodeMachine, plan: Mapping[PeerId, tuple[Contact, ...]]) -> None:
        super().__init__(machine)
        self._plan = plan

    def handle(self, event: Input, now: float) -> list[Effect]:
        """See `NodeMachine.handle`."""
        if isinstance(event, Received) and isinstance(event.message, Status):
            return []
        return super().handle(event, now)

    def choose_message(self, peer: PeerId, message: Message, now: float) -> Message | None:
        """See `SendingNode.choose_message`."""
        if isinstance(message, Instruction) and peer in self._plan:
            return replace(message, neighbors=self._plan[peer])
        if isinstance(message, Members) and peer in self._plan:
            return replace(message, contacts=self._plan[peer])
        return message


class MisledStream(StreamNodes):
    """The world of one scenario."""

    def __init__(
        self,
        scenario: TrackerAttack,
        trace: TraceSink | None = None,
        *,
        told: Notices = tells_of_a_loss,
        is_attacked: bool = True,
    ) -> None:
        super().__init__(scenario.seed, trace, told=told)
        self.scenario = scenario
        self._keeper = self.identity("keeper")
        honest = [self.identity(f"node {number}") for number in range(scenario.honest)]
        isolates = is_attacked and scenario.favour is Favour.ISOLATE
        accomplices = [self.identity(f"attacker {number}") for number in range(scenario.accomplices)]
        accomplices = accomplices if isolates else []
        plan = self._plan(honest, accomplices) if is_attacked else {}
        tracker = self.begin_tracker(
            lambda each: self._machine(each, is_tracker=True),
            (lambda machine: HostileTracker(machine, plan)) if is_attacked else SendingNode,
        )
        if is_attacked:
            self.hostile.append(tracker)
        if scenario.storage:
            self.add(self._keeper, SendingNode(self._machine(self._keeper, is_storage=True)), "keeper")
            self.start(self._keeper, 0.5)
        for each in honest:
            self.add_honest(each, SendingNode(self._machine(each)))
        for each in accomplices:
            self.add_hostile(each, withhold(Conduct.MUTE, self._machine(each), (), 0.0, ()))
        for number, each in enumerate((*honest, *accomplices)):
            self.join(each, 1.0 + 0.1 * number)

    def _machine(self, identity: Identity, *, is_tracker: bool = False, is_storage: bool = False) -> Peer:
        storage = (self.contact(self._keeper),) if self.scenario.storage else ()
        config = PeerConfig(
            listens=HINTS,
            trackers=self.trackers,
            is_tracker=is_tracker,
            storage=(StorageRule(STREAM),) if is_storage else (),
            streams={STREAM: StreamOptions(storage=storage)},
        )
        return self.machine(identity, config)

    def _plan(
        self, honest: Sequence[Identity], accomplices: Sequence[Identity]
    ) -> dict[PeerId, tuple[Contact, ...]]:
        """Return the neighbours that the tracker names to each node; the first one publishes."""
        match self.scenario.favour:
            case Favour.ISOLATE:
                victims = honest[-(len(honest) // 4) :]
                plan = self._ring([*honest[: -len(victims)]])
                plan |= {each.peer: tuple(map(self.contact, accomplices)) for each in victims}
                plan |= {each.peer: tuple(map(self.contact, victims)) for each in accomplices}
                return plan
            case Favour.PARTITION:
                return self._ring(honest[: len(honest) // 2]) | self._ring(honest[len(honest) // 2 :])
            case Favour.FAVOUR:
                near, line = honest[1:4], [honest[0], *honest[4:]]
                pairs = [(honest[0], each) for each in near] + list(pairwise(line))
                beside: dict[PeerId, tuple[Contact, ...]] = {}
                for one, other in pairs:
                    for origin, target in ((one, other), (other, one)):
                        beside[origin.peer] = (*beside.get(origin.peer, ()), self.contact(target))
                return beside

    def _ring(self, nodes: Sequence[Identity]) -> dict[PeerId, tuple[Contact, ...]]:
        """Link each of these nodes with the next ones on both sides."""
        steps = [step for step in range(-_SIDE, _SIDE + 1) if step]
        return {
            each.peer: tuple(self.contact(nodes[(number + step) % len(nodes)]) for step in steps)
            for number, each in enumerate(nodes)
        }

    def run(self) -> None:
        """Let the first node publish, and time pass until the last event is due."""
        scenario = self.scenario
        for number in range(scenario.messages):
            self.publish(self.honest[0], number, scenario.settle + number * scenario.gap)
        self.network.run(scenario.settle + (scenario.messages - 1) * scenario.gap + PATIENCE)


def run_tracker_attack(scenario: TrackerAttack, *, told: Notices = tells_of_a_loss) -> AttackFigures:
    """Run a scenario with a hostile tracker and with an honest one. The share of trackers that lie is 1."""
    world = MisledStream(scenario, told=told)
    calm = MisledStream(scenario, told=told, is_attacked=False)
    world.run()
    calm.run()
    name = scenario.favour.value + (BESIDE_STORAGE if scenario.storage else "")
    return measure_attack(name, 1.0, world, calm, scenario.settle)
