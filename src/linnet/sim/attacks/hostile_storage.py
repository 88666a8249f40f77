"""Storage nodes that confirm everything, keep nothing, and show no history.

A stream is published and kept; then its publisher goes, and readers come that want all of it. Anyone may
offer to store a stream: whether liars are asked depends on whether the readers know whose storage counts.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from linnet.core.ids import PeerId
from linnet.core.messages import Message
from linnet.delivery.messages import Heads, HistoryPage, Resent
from linnet.peer.config import Identity, PeerConfig
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
from linnet.streams.config import StorageRule, StreamOptions
from linnet.trace.records import TraceSink

_FIRST_EVENT = 15.0


class StorageAttack(Struct, frozen=True):
    """One stream with honest and hostile storage nodes."""

    share: float = 0.75
    """The share of the storage nodes that lie; one of all is honest, or more."""
    honest_storage: int = 1
    readers: int = 6
    named: bool = False
    """Whether the readers' configuration names the honest storage nodes; otherwise all are volunteers."""
    messages: int = 30
    gap: float = 0.5
    seed: int = 1

    @property
    def liars(self) -> int:
        """The number of storage nodes that lie."""
        return round(self.honest_storage * self.share / (1.0 - self.share))


class EmptyStorage(SendingNode):
    """A storage node that has nothing to show."""

    def choose_message(self, peer: PeerId, message: Message, now: float) -> Message | None:
        """See `SendingNode.choose_message`."""
        match message:
            case Heads(due=due):
                return replace(message, chains=(), due=None if due is None else ())
            case HistoryPage():
                return replace(message, units=(), cards=(), done=True, evicted=False)
            case Resent():
                return replace(message, units=(), cards=(), ages_ms=(), done=True)
            case _:
                return message


class StoredStream(StreamNodes):
    """The world of one scenario."""

    def __init__(
        self,
        scenario: StorageAttack,
        trace: TraceSink | None = None,
        *,
        told: Notices = tells_of_a_loss,
        is_attacked: bool = True,
    ) -> None:
        super().__init__(scenario.seed, trace, told=told)
        self.scenario = scenario
        keepers = [self.identity(f"keeper {number}") for number in range(scenario.honest_storage)]
        self._named = tuple(map(self.contact, keepers)) if scenario.named else ()
        self.begin_tracker(lambda each: self._machine(each, is_tracker=True))
        for each in keepers:
            self.add(each, SendingNode(self._machine(each, is_storage=True)), each.card.label)
            self.start(each, 1.0)
        for number in range(scenario.liars if is_attacked else 0):
            liar = self.identity(f"attacker {number}")
            self.add_hostile(liar, EmptyStorage(self._machine(liar, is_storage=True)))
            self.start(liar, 1.0)
        publisher = self.identity("publisher")
        self.add_honest(publisher, SendingNode(self._machine(publisher)))
        self.start(publisher, 2.0)
        over = _FIRST_EVENT + scenario.messages * scenario.gap + 10.0
        for number in range(scenario.messages):
            self.publish(publisher, number, _FIRST_EVENT + number * scenario.gap)
        self.network.at(over, lambda: self.network.crash(publisher.peer))
        self.readers_come = over + 10.0
        """Virtual second from which readers come, one a second."""
        for number in range(scenario.readers):
            reader = self.identity(f"reader {number}")
            self.add_honest(reader, SendingNode(self._machine(reader)))
            self.join(reader, self.readers_come + number, since=0.0)

    def _machine(self, identity: Identity, *, is_tracker: bool = False, is_storage: bool = False) -> Peer:
        config = PeerConfig(
            listens=HINTS,
            trackers=self.trackers,
            is_tracker=is_tracker,
            storage=(StorageRule(STREAM),) if is_storage else (),
            streams={STREAM: StreamOptions(storage=self._named)},
        )
        return self.machine(identity, config)

    def run(self) -> None:
        """Let time pass until all history is due at the last reader."""
        self.network.run(self.readers_come + self.scenario.readers + PATIENCE)


def run_storage_attack(scenario: StorageAttack, *, told: Notices = tells_of_a_loss) -> AttackFigures:
    """Run a scenario with storage nodes that lie, and without them."""
    world = StoredStream(scenario, told=told)
    calm = StoredStream(scenario, told=told, is_attacked=False)
    world.run()
    calm.run()
    name = "empty-storage" if scenario.named else "empty-volunteers"
    return measure_attack(name, scenario.share, world, calm, world.readers_come)
