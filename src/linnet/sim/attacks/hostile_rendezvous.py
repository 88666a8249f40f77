"""Nodes of content that take events and filters in, and hand no event on.

Every node may be the rendezvous of an attribute: the one whose key is nearest to it. Keys are free, so an
attacker can make some that are: then all events of that attribute come to it. Backups of filters help where a
rendezvous crashes; this one answers.
"""

from __future__ import annotations

from msgspec import Struct

from linnet.content.attribute_keys import attribute_key
from linnet.content.commands import AttributeFate, Outcome
from linnet.content.messages import Notice, Publish, Routes
from linnet.content.predicate import read_attributes, read_predicate
from linnet.core.ids import PeerId
from linnet.core.messages import Message
from linnet.peer.interface import NodeMachine
from linnet.sim.attacks.conduct import SendingNode
from linnet.sim.attacks.figures import AttackFigures
from linnet.sim.attacks.stream_nodes import PATIENCE
from linnet.sim.content.scenario import Course, Workload, draw_workload
from linnet.sim.content.world import ContentWorld
from linnet.sim.seeded_random import named_luck

_SETTLING = 30.0


class ContentAttack(Struct, frozen=True):
    """A network of content of which some nodes hand nothing on."""

    targeted: bool = True
    """Whether they are the rendezvous of what is published, as far as they suffice; else they are drawn."""
    share: float = 0.1
    """The share of all nodes that attack."""
    nodes: int = 60
    seed: int = 1


class WithholdingRendezvous(SendingNode):
    """A node that hands on neither events nor the routes that it keeps for others."""

    def __init__(self, machine: NodeMachine, withholds: bool) -> None:
        super().__init__(machine)
        self._withholds = withholds

    def choose_message(self, peer: PeerId, message: Message, now: float) -> Message | None:
        """See `SendingNode.choose_message`."""
        return None if self._withholds and isinstance(message, Notice | Publish | Routes) else message


class AttackedContent(ContentWorld):
    """The world of one scenario."""

    def __init__(self, scenario: ContentAttack, hostile: tuple[str, ...]) -> None:
        self.hostile = dict.fromkeys(hostile)
        self.sending: dict[str, SendingNode] = {}
        super().__init__(scenario.nodes, scenario.seed)

    def _machine(self, name: str) -> NodeMachine:
        node = WithholdingRendezvous(super()._machine(name), name in self.hostile)
        self.sending[name] = node
        return node

    def sent_by(self, hostile: bool) -> int:
        """Return the bytes that the hostile nodes sent, or the others."""
        return sum(node.bytes for name, node in self.sending.items() if (name in self.hostile) is hostile)


class ContentRun(Struct, frozen=True):
    """What came of the publications of honest nodes at honest subscribers."""

    due: int
    delivered: int
    slowest: float
    doubted_after: float | None
    """Seconds until the first publisher was told that somebody did not answer; None: no publisher was."""
    attacker_bytes: int
    honest_bytes: int


def run_content_attack(scenario: ContentAttack) -> AttackFigures:
    """Run a scenario with nodes that hand nothing on, and with the same nodes doing what is expected."""
    hostile = _attackers(scenario)
    bad, calm = _run(scenario, hostile, True), _run(scenario, hostile, False)
    return AttackFigures(
        attack="rendezvous" if scenario.targeted else "nodes",
        share=scenario.share,
        honest_due=bad.due,
        delivered=bad.delivered,
        delivered_without=calm.delivered,
        worst_seconds=bad.slowest,
        told_after_seconds=bad.doubted_after,
        attacker_bytes=bad.attacker_bytes,
        honest_bytes=bad.honest_bytes,
    )


def _attackers(scenario: ContentAttack) -> tuple[str, ...]:
    """Return the nodes that attack: publishers of the workload do not."""
    world = ContentWorld(scenario.nodes, scenario.seed)
    workload = draw_workload(world.names, Course.NORMAL, scenario.seed)
    said = [each.attributes for each in workload.publications()]
    attributes = dict.fromkeys(name for text in said for name, _ in read_attributes(text).conditions)
    chosen = dict.fromkeys(world.rendezvous(attribute_key(each)) for each in attributes)
    drawn = list(workload.subscribers)
    named_luck(scenario.seed, "hostile").shuffle(drawn)
    order = [*chosen, *drawn] if scenario.targeted else drawn
    able = dict.fromkeys(each for each in order if each not in workload.publishers)
    return tuple(able)[: round(scenario.share * scenario.nodes)]


def _run(scenario: ContentAttack, hostile: tuple[str, ...], is_attacked: bool) -> ContentRun:
    world = AttackedContent(scenario, hostile if is_attacked else ())
    workload = draw_workload(world.names, Course.NORMAL, scenario.seed)
    for name, predicate in workload.subscriptions():
        world.subscribe(name, predicate)
    world.run(_SETTLING)
    began = world.network.now
    said = [(each, world.publish(each.node, each.attributes, each.body)) for each in workload.publications()]
    doubted: float | None = None
    while world.network.now - began < PATIENCE:
        world.run(1.0)
        outcomes = [world.network.answers.get(request) for _, request in said]
        if doubted is None and any(map(_is_doubted, outcomes)):
            doubted = world.network.now - began
    due = list(_due(workload, hostile))
    arrived = {
        (name, match.body): at - began
        for name, matches in world.matches.items()
        for match, at in reversed(matches)
    }
    waits = [arrived[pair] for pair in due if pair in arrived]
    return ContentRun(
        due=len(due),
        delivered=sum(wait <= PATIENCE for wait in waits),
        slowest=max(waits, default=0.0),
        doubted_after=doubted,
        attacker_bytes=world.sent_by(hostile=True),
        honest_bytes=world.sent_by(hostile=False),
    )


def _is_doubted(outcome: object) -> bool:
    """Return whether the publisher was told that not all have its event."""
    fates: tuple[AttributeFate, ...] = outcome.fates if isinstance(outcome, Outcome) else ()
    return any(fate.missed or fate.reason is not None or not fate.settled for fate in fates)


def _due(workload: Workload, hostile: tuple[str, ...]) -> dict[tuple[str, bytes], None]:
    """Return the honest subscribers that want each event, with its body."""
    events = [(each.body, read_attributes(each.attributes)) for each in workload.publications()]
    return {
        (name, body): None
        for name, text in workload.subscriptions()
        if name not in hostile
        for body, event in events
        if read_predicate(text).covers(event)
    }
