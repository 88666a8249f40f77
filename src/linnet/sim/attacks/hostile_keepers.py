"""Keepers of a place that agree to keep it, and give nothing back.

Guests hear what was said while they were away from the keepers that the deed names, if the host is away by
then. Some of the keepers lie; the guests ask one after the other.
"""

from __future__ import annotations

from msgspec import Struct

from linnet.core.ids import PeerId
from linnet.core.messages import Message
from linnet.delivery.messages import Data
from linnet.peer.config import PeerConfig
from linnet.peer.interface import NodeMachine
from linnet.places.commands import Announce, Announced, ChangePlace, PlaceIs
from linnet.places.messages import Replayed, StateIs
from linnet.rooms.config import RelayConfig, RelayPolicy
from linnet.sim.attacks.conduct import SendingNode
from linnet.sim.attacks.figures import AttackFigures
from linnet.sim.places.world import HINTS, HOST, PlacesWorld

_WAIT = 120.0
"""Seconds for which guests that came back try to get what they lack."""


class KeeperAttack(Struct, frozen=True):
    """A place with keepers, its host, and guests that come back when the host is away."""

    share: float = 0.5
    """The share of the keepers that give nothing back."""
    keepers: int = 4
    guests: int = 6
    messages: int = 20
    seed: int = 1

    @property
    def liars(self) -> int:
        """The number of keepers that lie."""
        return round(self.share * self.keepers)


class EmptyKeeper(SendingNode):
    """A keeper that lets everybody in, and sends no fragment."""

    def __init__(self, machine: NodeMachine, is_empty: bool) -> None:
        super().__init__(machine)
        self._is_empty = is_empty

    def choose_message(self, peer: PeerId, message: Message, now: float) -> Message | None:
        """See `SendingNode.choose_message`."""
        return None if self._is_empty and isinstance(message, Data | Replayed | StateIs) else message


class KeptPlace(PlacesWorld):
    """The world of one scenario. The first guests are the keepers; liars come first in the deed."""

    def __init__(self, scenario: KeeperAttack, is_attacked: bool) -> None:
        self.keepers = [f"guest{number}" for number in range(scenario.keepers)]
        self.liars = dict.fromkeys(self.keepers[: scenario.liars])
        self.visitors = [f"guest{scenario.keepers + number}" for number in range(scenario.guests)]
        self._is_attacked = is_attacked
        self.sending: dict[str, SendingNode] = {}
        super().__init__(scenario.keepers + scenario.guests, scenario.seed)
        self.welcomes = True

    def configured(self, name: str) -> PeerConfig:
        """See `PlacesWorld.configured`."""
        relay = RelayConfig(policy=RelayPolicy.OPEN) if name in self.keepers else None
        return PeerConfig(listens=HINTS, places=self.config, relay=relay)

    def machine(self, name: str) -> NodeMachine:
        """See `NamedNodes.machine`; a node that restarts goes on counting."""
        node = EmptyKeeper(super().machine(name), self._is_attacked and name in self.liars)
        before = self.sending.get(name)
        node.bytes = 0 if before is None else before.bytes
        self.sending[name] = node
        return node

    def run(self, seconds: float) -> None:
        """Let virtual time pass."""
        self.network.run(self.network.elapsed + seconds)


class KeeperRun(Struct, frozen=True):
    """What guests had that came back."""

    delivered: int
    slowest: float
    """Seconds from a guest's return to the last message that it lacked."""
    attacker_bytes: int
    honest_bytes: int


def run_keeper_attack(scenario: KeeperAttack) -> AttackFigures:
    """Run a scenario with keepers that lie, and with the same ones honest."""
    bad, calm = _run(scenario, True), _run(scenario, False)
    return AttackFigures(
        attack="keepers",
        share=scenario.share,
        honest_due=scenario.guests * scenario.messages,
        delivered=bad.delivered,
        delivered_without=calm.delivered,
        worst_seconds=bad.slowest,
        told_after_seconds=None,
        attacker_bytes=bad.attacker_bytes,
        honest_bytes=bad.honest_bytes,
    )


def _run(scenario: KeeperAttack, is_attacked: bool) -> KeeperRun:
    world = KeptPlace(scenario, is_attacked)
    world.found()
    keepers = tuple(map(world.contact, world.keepers))
    world.obtain(HOST, ChangePlace(world.place, keepers=keepers), PlaceIs)
    world.run(5.0)
    for name in world.visitors:
        world.enter(name)
    world.run(5.0)
    for name in world.visitors:
        world.crash(name)
    bodies = [b"while you were away %d" % number for number in range(scenario.messages)]
    for body in bodies:
        world.obtain(HOST, Announce(world.place, "_message", (), body), Announced)
        world.run(0.5)
    world.run(5.0)
    world.crash(HOST)
    back = world.network.now
    for name in world.visitors:
        world.restart(name)
    delivered, slowest, before = 0, 0.0, 0
    while world.network.now - back < _WAIT and delivered < scenario.guests * len(bodies):
        world.run(0.5)
        delivered = sum(
            body in had
            for name in world.visitors
            for had in [set(world.said.get(name, {}).values())]
            for body in bodies
        )
        if delivered > before:
            slowest, before = world.network.now - back, delivered
    sent = {name: node.bytes for name, node in world.sending.items()}
    return KeeperRun(
        delivered=delivered,
        slowest=slowest,
        attacker_bytes=sum(sent[name] for name in world.liars),
        honest_bytes=sum(count for name, count in sent.items() if name not in world.liars),
    )
