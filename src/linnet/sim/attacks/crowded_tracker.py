"""Keys that found topic after topic at a tracker, until its table is full."""

from __future__ import annotations

from msgspec import Struct

from linnet.overlay.config import TrackerConfig
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.peer import Peer
from linnet.sim.attacks.conduct import SendingNode
from linnet.sim.attacks.figures import AttackFigures
from linnet.sim.attacks.stream_nodes import (
    HINTS,
    PATIENCE,
    Notices,
    StreamNodes,
    measure_attack,
    tells_of_a_loss,
)
from linnet.streams.commands import Subscribe
from linnet.trace.records import TraceSink

_FIRST_EVENT = 60.0
_FILLED_BY = 20.0
"""Virtual second by which the attackers have asked for all of their topics."""


class TableAttack(Struct, frozen=True):
    """A tracker with a small table, attackers that fill it, and honest nodes that come later."""

    honest: int = 12
    attackers: int = 25
    topics: int = 40
    """Topics that each attacker founds."""
    room: int = 200
    """Topics that the tracker accepts."""
    networks: int = 1
    """Networks from which the attackers come; 0: each from one of its own."""
    messages: int = 20
    seed: int = 1

    @property
    def share(self) -> float:
        """The share of all nodes that attack."""
        return self.attackers / (self.attackers + self.honest)


class CrowdedTracker(StreamNodes):
    """The world of one scenario."""

    def __init__(
        self,
        scenario: TableAttack,
        trace: TraceSink | None = None,
        *,
        told: Notices = tells_of_a_loss,
        is_attacked: bool = True,
    ) -> None:
        super().__init__(scenario.seed, trace, told=told)
        self.scenario = scenario
        self.begin_tracker(lambda each: self._machine(each, is_tracker=True))
        for number in range(scenario.attackers if is_attacked else 0):
            attacker = self.identity(f"attacker {number}")
            self.add_hostile(attacker, SendingNode(self._machine(attacker)), scenario.networks)
            self.start(attacker, 1.0)
            for each in range(scenario.topics):
                at = 1.0 + (_FILLED_BY - 1.0) * each / scenario.topics
                self.network.ask(attacker.peer, Subscribe(each, f"filler {number} {each}"), at=at)
        for number in range(scenario.honest):
            node = self.identity(f"node {number}")
            self.add_honest(node, SendingNode(self._machine(node)))
            self.join(node, _FILLED_BY + 10.0 + 0.1 * number)

    def _machine(self, identity: Identity, *, is_tracker: bool = False) -> Peer:
        config = PeerConfig(
            listens=HINTS,
            trackers=self.trackers,
            is_tracker=is_tracker,
            tracker=TrackerConfig(max_topics=self.scenario.room),
        )
        return self.machine(identity, config)

    def run(self) -> None:
        """Let the first honest node publish, and time pass until the last event is due."""
        for number in range(self.scenario.messages):
            self.publish(self.honest[0], number, _FIRST_EVENT + number)
        self.network.run(_FIRST_EVENT + self.scenario.messages - 1 + PATIENCE)


def run_table_attack(scenario: TableAttack, *, told: Notices = tells_of_a_loss) -> AttackFigures:
    """Run a scenario with the attackers and without them."""
    world, calm = CrowdedTracker(scenario, told=told), CrowdedTracker(scenario, told=told, is_attacked=False)
    world.run()
    calm.run()
    name = "fill-table" if scenario.networks == 1 else "fill-table-widely"
    return measure_attack(name, scenario.share, world, calm, _FIRST_EVENT)
